package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/host/fiberguest"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/state/statetest"
)

// fiberConfig is config with guests.Fiber as "test", which may submit to "echo".
func fiberConfig(t testing.TB) host.Config {
	t.Helper()
	cfg := config(t)
	echo := cfg.Workers[0]
	echo.Name = "echo"
	test := cfg.Workers[0]
	test.Plugin, test.Entry, test.MaySubmit = guests.Fiber, "", []string{"echo"}
	cfg.Workers = []host.Worker{test, echo}
	cfg.States = statetest.NewMemory()
	return cfg
}

// talk is a fiber under test.
type talk struct {
	*testing.T
	host *hosttest.Host
	id   string
	seq  uint64 // of the last output that was read
}

// start starts a fiber of "test".
func start(t *testing.T, h *hosttest.Host, id string, change ...func(*jobhost.FiberSpec)) *talk {
	t.Helper()
	spec := jobhost.FiberSpec{ID: id, Worker: "test", Init: []byte("begin")}
	for _, c := range change {
		c(&spec)
	}
	if _, err := h.StartFiber(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	return &talk{T: t, host: h, id: id}
}

func (k *talk) say(message string) {
	k.Helper()
	if err := k.host.SendFiber(k.Context(), k.id, []byte(message), true); err != nil {
		k.Fatal(err)
	}
}

// hear returns what the fiber publishes next.
func (k *talk) hear() string {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), 20*time.Second)
	defer cancel()
	for o, err := range k.host.WatchFiber(ctx, jobhost.FiberQuery{ID: k.id, Replay: true, After: k.seq}) {
		if err != nil {
			k.Fatal(err)
		}
		k.seq = o.Seq
		return string(o.Data)
	}
	return ""
}

// ask sends a message, of which the answer must be want.
func (k *talk) ask(message, want string) {
	k.Helper()
	k.say(message)
	if got := k.hear(); got != want {
		k.Fatalf("%q was answered %.100q, want %q", message, got, want)
	}
}

// over returns what is known of the fiber once it has ended.
func (k *talk) over() jobhost.Fiber {
	k.Helper()
	for _, err := range k.host.WatchFiber(k.Context(), jobhost.FiberQuery{ID: k.id}) {
		if err != nil && !errors.Is(err, jobhost.ErrFiberEnded) {
			k.Fatal(err)
		}
	}
	f, err := k.host.Fiber(k.Context(), k.id)
	if err != nil || !f.Status.Ended() {
		k.Fatalf("the fiber is %+v, %v", f, err)
	}
	return f
}

// wantKilled interrupts the fiber and wants that to be its end.
func (k *talk) wantKilled() {
	k.Helper()
	if _, err := k.host.InterruptFiber(k.Context(), k.id); err != nil {
		k.Fatal(err)
	}
	if f := k.over(); f.Status != jobhost.FiberKilled || f.Failure == nil || f.Failure.Code != fiber.FailInterrupted {
		k.Errorf("the fiber ended as %+v (%+v)", f, f.Failure)
	}
}

// TestFiberMemory: a run begins with the memory of the plugin, and keeps its own
// from message to message.
func TestFiberMemory(t *testing.T) {
	t.Parallel()
	h, _ := run(t, fiberConfig(t))
	restarts := func(f *jobhost.FiberSpec) {
		f.Restart = jobhost.RestartPolicy{When: jobhost.RestartAlways, Initial: jobhost.Duration(time.Millisecond)}
	}
	k := start(t, h, "a", restarts)
	k.ask("count", "1")
	k.ask("count", "2")
	for i, end := range []string{"end", "trap", "fail"} {
		k.say(end)
		k.ask("count", "1")
		if f, err := h.Fiber(t.Context(), "a"); err != nil || f.Restarts != i+1 {
			t.Errorf("after %s: %+v, %v", end, f, err)
		}
	}
	start(t, h, "b").ask("count", "1") // another sandbox
	k.ask("count", "2")
	k.ask("init", "begin")
	k.ask("info job.attempt", "4")
}

// TestFiberKeys: what fibers change is durable at once, and they see what others do.
func TestFiberKeys(t *testing.T) {
	t.Parallel()
	h, _ := run(t, fiberConfig(t))
	a, b := start(t, h, "a"), start(t, h, "b")
	a.ask("get", "-1")
	a.ask("set one", "0")
	if _, value, err := h.KeyValue(t.Context(), "test", "key"); err != nil || string(value) != "one" {
		t.Errorf("the key is %q, %v", value, err)
	}
	b.ask("get", "one")
	b.ask("set two", "0")
	a.ask("get", "two")
	if err := h.SetKey(t.Context(), "test", "key", []byte("three"), 0); err != nil {
		t.Fatal(err)
	}
	a.ask("get", "three")
	for i := range 10 {
		[]*talk{a, b}[i%2].ask("add", fmt.Sprint(i+1))
	}
	a.say("trap") // nothing of it goes with it
	a.over()
	b.ask("add", "11")
}

// TestFiberSums: additions of many fibers at one time lose nothing.
func TestFiberSums(t *testing.T) {
	t.Parallel()
	cfg := fiberConfig(t)
	cfg.Fibers.InputMessages = 1000
	h, _ := run(t, cfg)
	const fibers, times = 4, 50
	for i := range fibers {
		k := start(t, h, fmt.Sprint("f", i))
		for range times {
			k.say("add")
		}
		k.say("end")
	}
	for i := range fibers {
		(&talk{T: t, host: h, id: fmt.Sprint("f", i)}).over()
	}
	if _, value, err := h.KeyValue(t.Context(), "test", "sum"); err != nil || string(value) != fmt.Sprint(fibers*times) {
		t.Errorf("the sum is %q, %v", value, err)
	}
}

// TestFiberSubmits: a fiber submits jobs at once, and none with a success that it
// doesn't have.
func TestFiberSubmits(t *testing.T) {
	t.Parallel()
	h, _ := run(t, fiberConfig(t))
	k := start(t, h, "a")
	k.ask("submit worker: echo\nid: child\n\nhello", "1")
	if job := wait(t, h, "child"); job.State != jobhost.Succeeded {
		t.Errorf("the job is %+v", job)
	}
	k.ask("after worker: echo\n\n", "-5")
	k.ask("submit worker: test\n\n", "-2") // not granted
	page, err := h.Jobs(t.Context(), jobhost.Filter{})
	if err != nil || len(page.Jobs) != 1 {
		t.Errorf("the jobs are %+v, %v", page.Jobs, err)
	}
}

// TestFiberStates: a fiber's states are those of its own run.
func TestFiberStates(t *testing.T) {
	t.Parallel()
	h, _ := run(t, fiberConfig(t))
	k := start(t, h, "a")
	k.ask("state half-way", "0")
	query := jobhost.StateQuery{Job: "a", Run: fiberguest.StatesRun, Tag: "talk"}
	report, err := h.States(t.Context(), query)
	if err != nil || report.State.Message != "half-way" || report.State.Status != 8 {
		t.Errorf("the state is %+v, %v", report, err)
	}
	query.Run = ""
	if _, err := h.States(t.Context(), query); jobhost.CodeOf(err) != jobhost.CodeNotFound {
		t.Errorf("a job of the id: %v", err)
	}
}

// TestFiberLog: what fibers log is in the host's log, within bounds.
func TestFiberLog(t *testing.T) {
	t.Parallel()
	var log safeBuffer
	cfg := fiberConfig(t)
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	cfg.Workers[0].Limits.LogBytes = 64 << 10
	h, _ := run(t, cfg)
	k := start(t, h, "chatty")
	k.ask("log hello\x1b[31m", "logged")
	k.ask("ping", "ping") // its log is written before it takes another message
	if want := `msg=fiber fiber=chatty worker=test line=hello`; !strings.Contains(log.String(), want) || strings.Contains(log.String(), "\x1b") {
		t.Errorf("the log has no %s:\n%s", want, log.String())
	}
	for range 5 {
		k.ask("flood", "flooded")
	}
	k.say("end")
	k.over()
	if n := len(log.String()); n > 200<<10 {
		t.Errorf("the log has %d bytes", n)
	}
}

// TestFiberBudgets: what an attempt may do a fiber may do for each message.
func TestFiberBudgets(t *testing.T) {
	t.Parallel()
	s := serve(t, http.NotFound)
	cfg := fiberConfig(t)
	cfg.Workers[0].HTTP = grant(t, s.URL)
	cfg.Workers[0].Limits.Requests = 2
	h, _ := run(t, cfg)
	k := start(t, h, "a")
	for range 5 {
		k.ask("http GET "+s.URL+"/", "404")
	}
}

// TestFiberInterrupt: one that waits ends by itself, others after the grace.
func TestFiberInterrupt(t *testing.T) {
	t.Parallel()
	cfg := fiberConfig(t)
	h, _ := run(t, cfg)
	waiting := start(t, h, "waiting")
	waiting.ask("ping", "ping")
	waiting.wantKilled()
	spinning := start(t, h, "spinning")
	spinning.ask("spin", "spinning")
	spinning.wantKilled()
	stubborn := start(t, h, "stubborn", func(f *jobhost.FiberSpec) { f.Entry = "stubborn" })
	if got := stubborn.hear(); got != "waiting" {
		t.Fatalf("it says %q", got)
	}
	stubborn.wantKilled()
}

// TestStopWithFibers: nobody waits for fibers for longer than their grace.
func TestStopWithFibers(t *testing.T) {
	t.Parallel()
	cfg := fiberConfig(t)
	cfg.ShutdownTimeout = time.Hour
	h, stop := run(t, cfg)
	start(t, h, "idle").ask("ping", "ping")
	start(t, h, "spinning").ask("spin", "spinning")
	start(t, h, "resting", func(f *jobhost.FiberSpec) {
		f.Restart = jobhost.RestartPolicy{When: jobhost.RestartAlways, Initial: jobhost.Duration(time.Hour)}
	}).say("end")
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the host doesn't stop")
	}
	for _, id := range []string{"idle", "spinning", "resting"} {
		f, err := h.Fiber(t.Context(), id)
		if err != nil || f.Status != jobhost.FiberKilled || f.Failure == nil || f.Failure.Code != fiber.FailStopped {
			t.Errorf("%s ended as %+v (%+v), %v", id, f, f.Failure, err)
		}
	}
	if _, err := h.StartFiber(t.Context(), jobhost.FiberSpec{ID: "late", Worker: "test"}); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("a start after the end: %v", err)
	}
}

// TestFibersRefused: what can't be a fiber says why.
func TestFibersRefused(t *testing.T) {
	t.Parallel()
	cfg := fiberConfig(t)
	command := cfg.Workers[1]
	command.Name, command.Plugin, command.Entry = "command", guests.Command, ""
	cfg.Workers = append(cfg.Workers, command)
	cfg.Fibers = host.Fibers{Max: 1, FailWhenFull: true}
	h, _ := run(t, cfg)
	if _, err := h.StartFiber(t.Context(), jobhost.FiberSpec{ID: "a", Worker: "command"}); jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), "native ABI") {
		t.Errorf("a fiber of a command: %v", err)
	}
	k := start(t, h, "a")
	if _, err := h.StartFiber(t.Context(), jobhost.FiberSpec{ID: "b", Worker: "test"}); jobhost.CodeOf(err) != jobhost.CodeExhausted {
		t.Errorf("a fiber too many: %v", err)
	}
	k.wantKilled()
	start(t, h, "b").ask("ping", "ping")
}

func TestFibersConfig(t *testing.T) {
	t.Parallel()
	cfg := fiberConfig(t)
	one := jobhost.FiberSpec{ID: "a", Worker: "test"}
	bad := jobhost.FiberSpec{ID: "a b", Worker: "test"}
	cfg.Fibers = host.Fibers{Max: 2, Start: []jobhost.FiberSpec{one, one, bad, {ID: "c", Worker: "nobody"}, {ID: "d", Worker: "test"}}}
	_, err := host.New(cfg)
	for _, want := range []string{"fiber a: it is there twice", `fiber a b: "a b" is not the id`, "fiber c: there is no worker nobody", "4 fibers start with the host, and 2 may"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

// becomes waits until fibers are as wanted: "id:status" each.
func becomes(t *testing.T, h *hosttest.Host, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		page, err := h.Fibers(ctx, jobhost.FiberFilter{})
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, f := range page.Fibers {
			list = append(list, f.ID+":"+string(f.Status))
		}
		if got := strings.Join(list, " "); got == want {
			return
		} else if ctx.Err() != nil {
			t.Fatalf("the fibers are %s, want %s", got, want)
		}
		<-tick.C
	}
}
