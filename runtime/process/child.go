package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// child is a process to which the host is connected.
type child struct {
	process *launched
	client  *plugin.Client
	conn    *grpc.ClientConn
	worker  protocol.WorkerClient
	health  healthpb.HealthClient

	pipes  *toWorker   // frames are sent over them; nil = over gRPC
	bell   *os.File    // see ring; nil without pipes
	unread atomic.Bool // a lone task is in progress, and the process was not asked to read since
	out    *link.Sender[*protocol.HostFrame]
	endRun context.CancelFunc // ends the stream
	life   context.Context    // ends when the process has ended
	die    context.CancelFunc // ends life

	allowed *allowance // of a sandbox process that has loaded its plugin; protected by the supervisor's mutex once it has a place

	reading reading
	looking *atomic.Bool // set while an attempt of the engine looks for its result; nil = none may, as others need the processor
	lastRun atomic.Uint64

	mu      sync.Mutex // protects the rest
	runs    map[uint64]*run
	dead    bool      // it accepts no more runs
	ending  End       // why the host ended it, the first reason counts; empty = it didn't
	killer  uint64    // the run for which it was killed, with [EndedKilled]
	fault   error     // why the stream has ended
	dying   int       // runs that were in progress when it ended
	held    int       // bytes of frames that no run has handled yet
	partial int       // bytes of incomplete frames
	room    sync.Cond // signals room for more of them
}

func newChild() *child {
	c := &child{runs: map[uint64]*run{}}
	c.life, c.die = context.WithCancel(context.Background())
	c.room.L = &c.mu
	c.reading.resume = make(chan struct{}, 1)
	return c
}

// startChild starts a process and performs the handshake, within a time and until ctx ends. The returned child is
// connected, but has no stream yet: see open.
func (e *engine) startChild(ctx context.Context, c *command, within time.Duration) (*child, error) {
	ch := newChild()
	if goruntime.GOMAXPROCS(0) > 1 {
		ch.looking = &e.looking
	}
	if c.pipes {
		theirs, err := ch.pipe()
		if err != nil {
			return nil, err
		}
		defer func() { _ = theirs.Close() }()
		c.files = theirs.Files()
	}
	ch.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  link.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{link.Protocol: {link.Name: connection{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         c.encrypted,
		SkipHostEnv:      true,
		StartTimeout:     within,
		Logger:           hclog.NewNullLogger(),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: e.sockets.dir},
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithInitialWindowSize(link.Window), grpc.WithInitialConnWindowSize(link.Window),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(link.MaxMessage), grpc.MaxCallSendMsgSize(link.MaxMessage)),
		},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			ch.process = newLaunched(ctx, e, c, cmd.Env)
			return ch.process, nil
		},
	})
	dispensed, err := ch.connect(e.sockets.dir)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		ch.close()
		return nil, ch.explain(err)
	}
	ch.process.started()
	ch.conn = dispensed
	ch.worker, ch.health = protocol.NewWorkerClient(ch.conn), healthpb.NewHealthClient(ch.conn)
	return ch, nil
}

// connect performs the handshake. The socket must be in the folder: the process
// chooses its path, and a socket elsewhere would belong to another program.
func (c *child) connect(folder string) (*grpc.ClientConn, error) {
	addr, err := c.client.Start()
	if err != nil {
		return nil, err
	}
	if err := checkSocket(folder, addr); err != nil {
		return nil, err
	}
	client, err := c.client.Client()
	if err != nil {
		return nil, err
	}
	conn, err := client.Dispense(link.Name)
	if err != nil {
		return nil, err
	}
	return conn.(*grpc.ClientConn), nil
}

// connection is the host's side of go-plugin's plugin: it dispenses the connection itself.
type connection struct{ plugin.NetRPCUnsupportedPlugin }

// GRPCServer implements [plugin.GRPCPlugin]; a host serves nothing.
func (connection) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

// GRPCClient implements [plugin.GRPCPlugin].
func (connection) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// end handles the end of the stream, without which a process is of no use.
func (c *child) end(err error) {
	c.mu.Lock()
	c.dead, c.fault, c.dying = true, err, len(c.runs)
	c.mu.Unlock()
	timer := time.NewTimer(leaveTime)
	defer timer.Stop()
	select {
	case <-c.process.exited: // this is why the stream has ended, or follows from it
	case <-timer.C:
		_ = c.process.Kill(context.Background())
		<-c.process.exited
	}
	c.die()
}

// begin adds a run; false = the process accepts no more.
func (c *child) begin(r *run) bool {
	r.id, r.child = c.lastRun.Add(1), c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return false
	}
	c.runs[r.id] = r
	return true
}

// finish removes a run.
func (c *child) finish(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, r.id)
	c.forgetLocked(r)
	r.hasEnded()
}

// endText says how the process ended, and what violated the protocol before that.
func (c *child) endText() string {
	text := c.process.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ofStream := status.FromError(c.fault); c.fault != nil && !ofStream && !errors.Is(c.fault, io.EOF) {
		text = c.fault.Error() + "; " + text
	}
	return text
}

// killFor kills the process because of a run.
func (c *child) killFor(r *run) {
	c.mu.Lock()
	if !c.dead {
		c.endLocked(EndedKilled)
		c.killer = r.id
	}
	c.mu.Unlock()
	_ = c.process.Kill(context.Background())
}

// explain returns why a process could not be started.
func (c *child) explain(err error) error {
	if c.process == nil {
		return err
	}
	select {
	case <-c.process.exited:
		return fmt.Errorf("%w (%s)", err, c.process.end())
	default:
		return err
	}
}

// victims returns how many runs were in progress when the process ended.
func (c *child) victims() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dying
}

// killedFor returns the run for which the process was killed; 0 = none.
func (c *child) killedFor() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.killer
}

// cause returns why the process has ended.
func (c *child) cause(stopped bool) End {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ending != "":
		return c.ending
	case stopped:
		return EndedClosed
	}
	return EndedCrashed
}

// endLocked records why the host ends the process, unless it was ended before.
func (c *child) endLocked(why End) {
	if !c.dead && c.ending == "" {
		c.ending = why
	}
	c.dead = true
}

// release tells the process that a slot is no longer used.
func (c *child) release(slot uint32) {
	c.mu.Lock()
	dead := c.dead
	c.mu.Unlock()
	if !dead {
		_ = c.out.Send(&protocol.HostFrame{Frame: &protocol.HostFrame_Release{Release: &protocol.Release{Slot: slot}}}, frameBytes)
	}
}

// How often the host checks that a process reads its frames, how often it checks its health, and how long the
// process may take to answer.
const (
	lookTime     = time.Second
	healthTime   = 10 * time.Second
	healthWithin = 10 * time.Second
)

// healthy asks the process whether it is alive.
func (c *child) healthy() bool {
	ctx, cancel := context.WithTimeout(c.life, healthWithin)
	defer cancel()
	r, err := c.health.Check(ctx, &healthpb.HealthCheckRequest{Service: plugin.GRPCServiceName})
	return c.life.Err() != nil || err == nil && r.GetStatus() == healthpb.HealthCheckResponse_SERVING
}

// stuck reports whether the process has left its frames unread for too long.
func (c *child) stuck() bool { return c.out.Stuck() > healthWithin }

// overdue returns a run that is past its deadline but can't end, since the process doesn't read; nil = none.
func (c *child) overdue() *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.runs {
		if r.overdue() {
			return r
		}
	}
	return nil
}

// hang kills the process because it doesn't answer.
func (c *child) hang() {
	c.mu.Lock()
	c.endLocked(EndedHung)
	c.mu.Unlock()
	_ = c.process.Kill(context.Background())
}

// leave closes the stream, so that the process ends on its own, and waits a moment for that.
func (c *child) leave() {
	c.mu.Lock()
	c.endLocked(EndedClosed)
	c.mu.Unlock()
	if c.endRun == nil {
		return
	}
	c.endRun()
	timer := time.NewTimer(leaveTime)
	defer timer.Stop()
	select {
	case <-c.process.exited:
	case <-timer.C:
	}
}

// close kills the process if it still runs, and frees its resources.
func (c *child) close() {
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
	if c.process != nil && c.process.cmd.Process != nil {
		_ = c.process.Kill(context.Background())
		<-c.process.exited
	}
	if c.pipes != nil {
		_, _ = c.pipes.Close(), c.bell.Close()
	}
	c.client.Kill() // frees go-plugin's resources; the process has already ended
}

// leaveTime is how long a process has to end on its own.
const leaveTime = 2 * time.Second
