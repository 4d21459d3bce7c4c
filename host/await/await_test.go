package await_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/await"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/netproxy/policy"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// board is a watcher of jobs that end when the test says so.
type board struct {
	ended   op.Future[jobhost.Job]
	waiting atomic.Int64
}

func (b *board) Wait(ctx context.Context, id string) (jobhost.Job, error) {
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	job, err := op.Perform(ctx, b.ended.Get())
	job.ID = id
	return job, err
}

func (b *board) Events(context.Context, jobhost.EventQuery) iter.Seq2[jobhost.Event, error] {
	return func(func(jobhost.Event, error) bool) {}
}

func TestJob(t *testing.T) {
	t.Parallel()
	s := scope.New(t.Context(), "test")
	b := new(board)
	timeout := op.Wrap(op.After(time.Millisecond), func(time.Time) (jobhost.Job, error) { return jobhost.Job{}, context.DeadlineExceeded })
	if _, err := op.PerformRaw(op.Choice(await.Job(s, b, "a"), timeout)); !errors.Is(err, context.DeadlineExceeded) || b.waiting.Load() != 0 {
		t.Errorf("timeout: %v, and %d still wait", err, b.waiting.Load())
	}
	b.ended.Set(jobhost.Job{State: jobhost.Succeeded}, nil)
	if job, err := op.PerformRaw(await.Job(s, b, "a")); err != nil || job.ID != "a" || job.State != jobhost.Succeeded {
		t.Errorf("got %+v, %v", job, err)
	}
	if _, err := s.Join(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := op.PerformRaw(await.Job(s, b, "a")); err == nil {
		t.Error("waited for in a scope that has ended")
	}
}

func TestCallFails(t *testing.T) {
	t.Parallel()
	s, broken := scope.New(t.Context(), "test"), errors.New("broken")
	if _, err := op.PerformRaw(await.Call(s, "x", func(context.Context) (int, error) { return 1, broken })); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if r, err := s.Join(context.Background()); err != nil || r.Status != scope.StatusOK {
		t.Errorf("the scope is %v: what a call comes to is its caller's affair", r.Status)
	}
}

// site is a server that answers /slow when the request is given up.
func site(t *testing.T) (url string, pool netproxy.Pool, given *op.Signal) {
	t.Helper()
	given = new(op.Signal)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			given.Fire()
			return
		}
		_, _ = fmt.Fprint(w, "hello")
	}))
	t.Cleanup(server.Close)
	rule, err := policy.ParseRule("GET " + server.URL + "/*")
	if err != nil {
		t.Fatal(err)
	}
	client, err := netproxy.New(netproxy.Config{Policy: policy.Policy{
		Allow: []policy.Rule{rule}, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	pool = netproxy.NewProcessor(netproxy.ProcessorConfig{Client: client})
	if err := pool.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Stop(time.Second) })
	return server.URL, pool, given
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	url, pool, given := site(t)
	r, err := op.Perform(t.Context(), await.HTTP(pool, netproxy.RequestSpec{URL: url + "/"}))
	if err != nil || string(r.Body) != "hello" {
		t.Fatalf("got %v, %v", r, err)
	}
	for name, spec := range map[string]netproxy.RequestSpec{
		"no URL":   {URL: "::"},
		"not mine": {URL: "http://169.254.169.254/"},
	} {
		if _, err := op.Perform(t.Context(), await.HTTP(pool, spec)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	slow := await.HTTP(pool, netproxy.RequestSpec{URL: url + "/slow"})
	fast := await.HTTP(pool, netproxy.RequestSpec{URL: url + "/fast"})
	if r, err := op.Perform(t.Context(), op.Choice(slow, fast)); err != nil || string(r.Body) != "hello" {
		t.Fatalf("got %v, %v", r, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := op.Perform(ctx, slow); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("slow: %v", err)
	}
	if _, err := op.Perform(t.Context(), given.Wait()); err != nil {
		t.Errorf("the request that lost was not given up: %v", err)
	}
	if err := pool.Stop(time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := op.Perform(t.Context(), fast); !errors.Is(err, netproxy.ErrClosed) {
		t.Errorf("stopped pool: %v", err)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	store := statetest.NewMemory()
	b, err := state.NewBoard(t.Context(), store, state.Job{ID: "job"}, 1, state.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := state.NewManager(b, 0)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := m.Subscribe(t.Context(), state.WithTag("x"))
	if err != nil {
		t.Fatal(err)
	}
	changes := await.NewChanges(sub)
	if e, err := op.Perform(t.Context(), changes.Next()); err != nil || !e.Sentinel {
		t.Fatalf("first: %+v, %v", e, err)
	}
	soon := op.OrElse(changes.Next(), func() (*state.Event, error) { return nil, nil })
	if e, err := op.Perform(t.Context(), soon); e != nil || err != nil {
		t.Fatalf("before a change: %+v, %v", e, err)
	}
	if err := m.SetState(t.Context(), state.State{Tag: "x", Status: 7}); err != nil {
		t.Fatal(err)
	}
	if e, err := op.Perform(t.Context(), changes.Next()); err != nil || e.State.Status != 7 {
		t.Fatalf("change: %+v, %v", e, err)
	}
	sub.Close()
	if _, err := op.Perform(t.Context(), changes.Next()); !errors.Is(err, state.ErrClosed) {
		t.Errorf("end: %v", err)
	}
	if err := errors.Join(b.Close(), store.Close()); err != nil {
		t.Error(err)
	}
}
