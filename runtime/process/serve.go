package process

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"sync"

	"google.golang.org/grpc"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/process/loadpb"
)

// ServeSandbox is the main function of a sandbox process: it loads the plugin that the host sends, and runs its tasks
// until the host ends the stream, and with it the process. open opens the engine, which may cache compiled modules in
// cache.
func ServeSandbox(open func(cache string, logger *slog.Logger) (runtime.Engine, error)) {
	// Saved now, since go-plugin will replace os.Stderr by a file that leads nowhere.
	s := &sandbox{open: open, stderr: os.Stderr, slots: map[uint32]*slot{}}
	link.ServePipes(s, func(g *grpc.Server) { loadpb.RegisterLoaderServer(g, s) })
}

// sandbox is the program of a sandbox process.
type sandbox struct {
	loadpb.UnimplementedLoaderServer

	open   func(cache string, logger *slog.Logger) (runtime.Engine, error)
	stderr *os.File
	plugin runtime.Plugin // set by Load, before there are tasks
	source runtime.Source

	mu    sync.Mutex // protects slots
	slots map[uint32]*slot
}

// slot is a sandbox of the process. It is used by one run at a time.
type slot struct {
	sandbox *runtime.Sandbox
	attempt hostcall.Attempt
	result  runtime.Result // of the last run

	mu      sync.Mutex // protects current
	current *link.Run  // the run that the attempt belongs to; nil = none
}

// begin binds the slot to a run; end undoes that, so that the run no longer cancels the slot's attempt.
func (s *slot) begin(run *link.Run) {
	s.mu.Lock()
	s.current = run
	s.mu.Unlock()
	run.OnCancel(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.current == run {
			s.attempt.Cancel()
		}
	})
}

func (s *slot) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = nil
}

// Load implements [loadpb.LoaderServer].
func (s *sandbox) Load(stream grpc.ClientStreamingServer[loadpb.Part, loadpb.Loaded]) error {
	l, err := receiveSource(stream)
	if err != nil {
		return err
	}
	plugin, err := s.load(stream.Context(), l)
	if err != nil {
		return stream.SendAndClose(&loadpb.Loaded{Fault: faultOf(err)})
	}
	info, err := json.Marshal(plugin.Info())
	if err != nil {
		return err
	}
	return stream.SendAndClose(&loadpb.Loaded{Info: info})
}

func (s *sandbox) load(ctx context.Context, l *loading) (runtime.Plugin, error) {
	logger := slog.New(slog.NewTextHandler(s.stderr, nil))
	engine, err := s.open(l.CacheDir, logger)
	if err != nil {
		return nil, err
	}
	// The engine has what it needs from the system, and has not seen any untrusted input yet.
	if err := wall(l, engine, logger); err != nil {
		return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "a sandbox process can't confine itself", Cause: err}
	}
	plugin, err := engine.Load(context.WithoutCancel(ctx), l.Source)
	if err != nil {
		return nil, err
	}
	collectEarlier(slotsOf(&l.Source))
	s.plugin, s.source = plugin, l.Source
	s.source.Limits = s.source.Limits.OrDefaults()
	return plugin, nil
}

func faultOf(err error) *loadpb.Fault {
	f := &loadpb.Fault{Code: string(jobhost.CodeOf(err)), Message: err.Error(), Hint: jobhost.HintOf(err)}
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		f.Field, f.Message = e.Field, e.Message
	}
	return f
}

// Describe implements [link.Program].
func (s *sandbox) Describe(context.Context, *protocol.DescribeRequest) (*protocol.DescribeResponse, error) {
	return &protocol.DescribeResponse{Protocol: link.Protocol, Sdk: "sandbox"}, nil
}

// Run implements [link.Program].
func (s *sandbox) Run(ctx context.Context, run *link.Run) *protocol.Result {
	slot := s.slot(run.Task.GetSlot())
	slot.attempt.Reset()
	s.prepare(&slot.attempt, run)
	slot.result = runtime.Result{}
	slot.begin(run)
	outcome := slot.sandbox.Run(ctx, &slot.attempt)
	slot.end()
	return resultOf(&outcome, &slot.result)
}

// slot returns a slot, creating it on first use.
func (s *sandbox) slot(number uint32) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.slots[number]; have != nil {
		return have
	}
	made := &slot{}
	made.sandbox = runtime.NewSandbox(s.plugin, func(r *runtime.Result) { made.result = *r })
	s.slots[number] = made
	return made
}

// Release implements [link.Program].
func (s *sandbox) Release(number uint32) {
	s.mu.Lock()
	gone := s.slots[number]
	delete(s.slots, number)
	s.mu.Unlock()
	if gone != nil {
		_ = gone.sandbox.Close(context.Background())
	}
}

// prepare sets up an attempt for a task. The host knows the grants and their limits; limits that are
// enforced here spare it the work.
func (s *sandbox) prepare(at *hostcall.Attempt, run *link.Run) {
	t := run.Task
	at.Job, at.Worker, at.Trace, at.Entry = t.GetJob(), t.GetWorker(), t.GetTrace(), t.GetEntry()
	at.Task, at.Tasks, at.Number = int(t.GetIndex()), int(t.GetTasks()), int(t.GetAttempt())
	at.Priority, _ = jobhost.ParsePriority(t.GetPriority())
	at.Labels, at.Config = t.GetLabels(), s.source.Config
	at.Input = t.GetInput()
	if size := t.GetInputBytes(); size > int64(len(at.Input)) {
		at.LargeInput, at.Input = size, nil
	}
	at.Deadline = run.Deadline
	at.Limits = hostcall.Limits{
		OutputBytes: int(t.GetOutputLimit()), SpillBytes: maxInput,
		LogBytes: s.source.Limits.LogBytes, LineBytes: s.source.Limits.LineBytes, LogLevel: slog.Level(t.GetLogLevel()),
	}
	at.Services = &far{run: run}
}

// resultOf converts the end of an attempt for the host.
func resultOf(o *jobhost.Outcome, r *runtime.Result) *protocol.Result {
	result := &protocol.Result{}
	switch o.Kind {
	case jobhost.OutcomeSucceeded:
		result.Outcome = &protocol.Result_Output{Output: o.Output}
	case jobhost.OutcomeSnoozed:
		result.Outcome = &protocol.Result_SnoozeMs{SnoozeMs: max(o.Snooze.Milliseconds(), 1)}
	case jobhost.OutcomeFailed:
		f := o.Failure
		result.Outcome = &protocol.Result_Failure{Failure: &protocol.Failure{
			Code: f.Code, Category: string(f.Category), Severity: string(f.Severity), Message: f.Message,
			Context: f.Context, Stack: f.Stack, Permanent: !f.Retryable,
		}}
	default:
		result.Outcome = &protocol.Result_Stopped{Stopped: &protocol.Stopped{}}
	}
	if o.Fuel != 0 || r.Replace != "" || r.Reset != 0 || r.MemoryRefused {
		result.Sandbox = &protocol.Sandbox{Fuel: o.Fuel, Replace: string(r.Replace), ResetNs: r.Reset.Nanoseconds(), MemoryRefused: r.MemoryRefused}
	}
	return result
}
