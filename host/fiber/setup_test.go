package fiber_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// grace is what interrupted fibers have left.
const grace = 5 * time.Second

// fixture is a registry with a scope of its own.
type fixture struct {
	*fiber.Registry
	t    testing.TB
	root *scope.Scope
	log  logBuffer

	mu         sync.Mutex // protects the fields below
	refused    map[fiber.Limit]int
	started    int
	restarted  int
	endedAs    map[jobhost.FiberStatus]int
	terminated map[string][]jobhost.Fiber // arguments of on_terminate, by id
}

// setup returns a registry with two permits, unless change says otherwise. It is
// stopped and joined when the test is over.
func setup(t testing.TB, change ...func(*fiber.Config)) *fixture {
	t.Helper()
	f := &fixture{
		t: t, root: scope.New(context.Background(), "host"),
		refused: map[fiber.Limit]int{}, endedAs: map[jobhost.FiberStatus]int{}, terminated: map[string][]jobhost.Fiber{},
	}
	cfg := fiber.Config{
		Scope: f.root, Max: 2, InputMessages: 3, InputBytes: 100, Replay: 4, Buffer: 8, History: 5, Grace: grace,
		Logger: slog.New(slog.NewTextHandler(&f.log, nil)),
		Observe: fiber.Observe{
			Started:   func(string) { f.note(func() { f.started++ }) },
			Restarted: func(string) { f.note(func() { f.restarted++ }) },
			Ended:     func(_ string, s jobhost.FiberStatus) { f.note(func() { f.endedAs[s]++ }) },
			Refused:   func(l fiber.Limit) { f.note(func() { f.refused[l]++ }) },
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if f.Registry, err = fiber.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.root.Cancel(errors.New("the test is over"))
		report, _ := f.root.Join(context.Background())
		if report.Status == scope.StatusFailed {
			t.Errorf("the scope failed: %v", report.Err())
		}
		if s := f.Stats(); s.Live != 0 || s.Waiting != 0 {
			t.Errorf("after the join there is %+v", s)
		}
	})
	return f
}

// bubble runs f in a synctest bubble.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

func (f *fixture) note(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// onTerminate records its argument.
func (f *fixture) onTerminate(end jobhost.Fiber) error {
	f.note(func() { f.terminated[end.ID] = append(f.terminated[end.ID], end) })
	return nil
}

// start starts a fiber that must begin.
func (f *fixture) start(id string, body fiber.Body) jobhost.Fiber {
	f.t.Helper()
	return f.startSpec(spec(id), body)
}

func (f *fixture) startSpec(s jobhost.FiberSpec, body fiber.Body) jobhost.Fiber {
	f.t.Helper()
	got, err := f.Start(f.t.Context(), s, body, f.onTerminate)
	if err != nil {
		f.t.Fatalf("start %s: %v", s.ID, err)
	}
	return got
}

// begin starts a fiber in a goroutine and returns what gets its error.
func (f *fixture) begin(ctx context.Context, id string, body fiber.Body) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := f.Start(ctx, spec(id), body, f.onTerminate)
		done <- err
	}()
	return done
}

// end waits for the end of a fiber.
func (f *fixture) end(id string) jobhost.Fiber {
	f.t.Helper()
	got, err := f.Wait(f.t.Context(), id)
	if err != nil {
		f.t.Fatalf("wait for %s: %v", id, err)
	}
	return got
}

func (f *fixture) get(id string) jobhost.Fiber {
	f.t.Helper()
	got, err := f.Fiber(f.t.Context(), id)
	if err != nil {
		f.t.Fatalf("get %s: %v", id, err)
	}
	return got
}

func (f *fixture) submit(id, message string) {
	f.t.Helper()
	if err := f.SendFiber(f.t.Context(), id, []byte(message), false); err != nil {
		f.t.Fatalf("submit to %s: %v", id, err)
	}
}

func (f *fixture) wantStatus(id string, want jobhost.FiberStatus) {
	f.t.Helper()
	synctest.Wait()
	if got := f.get(id); got.Status != want {
		f.t.Errorf("%s is %s, want %s", id, got.Status, want)
	}
}

// wantTerminated checks how often on_terminate ran for a fiber.
func (f *fixture) wantTerminated(id string, want int) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := len(f.terminated[id]); got != want {
		f.t.Errorf("on_terminate of %s ran %d times, want %d", id, got, want)
	}
}

// wantCode checks the code of an error, and whether it says that the fiber has ended.
func wantCode(t testing.TB, err error, code jobhost.Code, ended bool) {
	t.Helper()
	if jobhost.CodeOf(err) != code || errors.Is(err, jobhost.ErrFiberEnded) != ended {
		t.Errorf("error %v with code %q, want %q; that the fiber has ended: %v", err, jobhost.CodeOf(err), code, ended)
	}
}

func spec(id string) jobhost.FiberSpec { return jobhost.FiberSpec{ID: id, Worker: "w"} }

// echo answers each message until there is no more input.
func echo(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
	for {
		message, err := op.Perform(ctx, f.Recv())
		if err != nil {
			return []byte("done"), nil //nolint:nilerr // the end of the input or of the time
		}
		_ = f.Emit(message)
	}
}

// deaf ends with its context only.
func deaf(ctx context.Context, _ *fiber.Fiber) ([]byte, *jobhost.Failure) {
	<-ctx.Done()
	return nil, nil
}

// returns is a body that returns at once.
func returns(result string) fiber.Body {
	return func(context.Context, *fiber.Fiber) ([]byte, *jobhost.Failure) { return []byte(result), nil }
}

// fails is a body that fails at once.
func fails(context.Context, *fiber.Fiber) ([]byte, *jobhost.Failure) {
	return nil, &jobhost.Failure{Code: "broken", Category: jobhost.CategoryBusiness, Message: "it is broken"}
}

// gate is a body that ends when the gate is opened.
type gate chan struct{}

func (g gate) body(ctx context.Context, _ *fiber.Fiber) ([]byte, *jobhost.Failure) {
	select {
	case <-g:
	case <-ctx.Done():
	}
	return []byte("through"), nil
}

// logBuffer keeps what is logged.
type logBuffer struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
