package pool_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/pool"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// numbered is a plugin that returns its number. It tells when it is used or closed wrongly.
type numbered struct {
	t         *testing.T
	number    int
	instances atomic.Int64
	closed    chan struct{}
	// entered receives from each run of a job whose payload is "hold", which then waits
	// until resume is closed.
	entered, resume chan struct{}
}

func newNumbered(t *testing.T, number int) *numbered {
	return &numbered{
		t: t, number: number, closed: make(chan struct{}),
		entered: make(chan struct{}, 16), resume: make(chan struct{}),
	}
}

func (p *numbered) Info() runtime.Info { return runtime.Info{} }

func (p *numbered) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

func (p *numbered) Instantiate(context.Context) (runtime.Instance, error) {
	if p.isClosed() {
		p.t.Errorf("version %d makes a sandbox after it was closed", p.number)
	}
	p.instances.Add(1)
	return &numberedInstance{plugin: p}, nil
}

func (p *numbered) Close(context.Context) error {
	if n := p.instances.Load(); n != 0 {
		p.t.Errorf("version %d is closed with %d sandboxes", p.number, n)
	}
	close(p.closed) // a second one panics
	return nil
}

type numberedInstance struct {
	plugin *numbered
	closed atomic.Bool
}

func (i *numberedInstance) Run(ctx context.Context, at *hostcall.Attempt) runtime.Result {
	if i.plugin.isClosed() || i.closed.Load() {
		i.plugin.t.Errorf("version %d runs after it was closed", i.plugin.number)
	}
	if string(at.Input) == "hold" {
		i.plugin.entered <- struct{}{}
		select {
		case <-i.plugin.resume:
		case <-ctx.Done():
			return runtime.Result{Outcome: at.Stopped(ctx)}
		}
	}
	if v := at.Config["version"]; v != strconv.Itoa(i.plugin.number) {
		i.plugin.t.Errorf("version %d was given the settings of version %s", i.plugin.number, v)
	}
	return runtime.Result{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeSucceeded, Output: []byte(strconv.Itoa(i.plugin.number))}}
}

func (i *numberedInstance) Close(context.Context) error {
	if i.closed.Swap(true) {
		i.plugin.t.Error("a sandbox is closed twice")
	}
	i.plugin.instances.Add(-1)
	return nil
}

// swapFixture is a pool on a queue in memory with the worker "w".
type swapFixture struct {
	*pool.Pool
	t     *testing.T
	queue *queue.Queue
	root  *scope.Scope
	ended map[string]chan struct{} // by job; not changed after setup
}

func versionOf(p *numbered, size int) pool.Version {
	return pool.Version{Plugin: p, Size: size, Config: map[string]string{"version": strconv.Itoa(p.number)}}
}

func setupSwap(t *testing.T, first pool.Version, jobs ...string) *swapFixture {
	t.Helper()
	store, err := sqlitequeue.Open(sqlitequeue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &swapFixture{t: t, root: scope.New(context.Background(), "test"), ended: map[string]chan struct{}{}}
	for _, id := range jobs {
		f.ended[id] = make(chan struct{})
	}
	f.queue, err = queue.New(t.Context(), store, queue.Config{
		Workers: []queue.Worker{{Name: "w", Capacity: 100_000, Retry: jobhost.DefaultRetry(), Timeout: time.Minute}},
		Publish: func(e jobhost.Event) {
			if e.Kind == jobhost.EventEnded {
				close(f.ended[e.Job])
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Pool = pool.New(pool.Config{
		Worker: "w", Queue: f.queue, Services: noServices{}, CancelGrace: time.Second, Logger: slog.New(slog.DiscardHandler),
	}, first)
	if err := f.Start(f.root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.stop()
		if err := errors.Join(f.queue.Close(context.Background()), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// stop ends the pool as the end of a host does.
func (f *swapFixture) stop() {
	f.queue.Stop()
	f.root.Cancel(hostcall.ErrReturned)
	_, _ = f.root.Join(context.Background())
}

func (f *swapFixture) submit(id, payload string) {
	f.t.Helper()
	if _, err := f.queue.Submit(f.t.Context(), jobhost.Spec{ID: id, Worker: "w", Payload: []byte(payload)}); err != nil {
		f.t.Fatal(err)
	}
}

// result waits for a job and returns the number of the version that ran it.
func (f *swapFixture) result(id string) int {
	f.t.Helper()
	<-f.ended[id]
	result, err := f.queue.Result(f.t.Context(), id, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	n, err := strconv.Atoi(string(result.Data))
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

func (f *swapFixture) swap(v pool.Version) {
	f.t.Helper()
	if err := f.Swap(v); err != nil {
		f.t.Fatal(err)
	}
}

type noServices struct{}

func (noServices) Emit(*hostcall.Attempt, []byte)           {}
func (noServices) Progress(*hostcall.Attempt, int64, int64) {}
func (noServices) Metric(*hostcall.Attempt, hostcall.MetricKind, string) (int32, hostcall.Errno) {
	return 0, 0
}
func (noServices) Observe(*hostcall.Attempt, int32, float64) hostcall.Errno { return 0 }

func TestSwapWhileATaskRuns(t *testing.T) {
	t.Parallel()
	one, two := newNumbered(t, 1), newNumbered(t, 2)
	f := setupSwap(t, versionOf(one, 2), "old", "new")
	f.submit("old", "hold")
	<-one.entered
	f.swap(versionOf(two, 2))
	f.submit("new", "")
	if n := f.result("new"); n != 2 {
		t.Errorf("a task after the swap ran on version %d", n)
	}
	if one.isClosed() {
		t.Error("the old version was closed while a task ran on it")
	}
	close(one.resume)
	if n := f.result("old"); n != 1 {
		t.Errorf("the running task ended on version %d", n)
	}
	<-one.closed
}

func TestSwapOfAnIdlePoolFreesTheOldVersion(t *testing.T) {
	t.Parallel()
	one, two := newNumbered(t, 1), newNumbered(t, 2)
	f := setupSwap(t, versionOf(one, 2), "warm")
	f.submit("warm", "")
	f.result("warm")
	f.swap(versionOf(two, 2))
	<-one.closed
	f.stop()
	if !two.isClosed() {
		t.Error("the end of the worker's scope does not close the plugin")
	}
}

func TestSwapResizes(t *testing.T) {
	t.Parallel()
	jobs := []string{"a", "b", "c", "d", "e"}
	versions := []*numbered{newNumbered(t, 0), newNumbered(t, 1), newNumbered(t, 2)}
	f := setupSwap(t, versionOf(versions[0], 1), jobs...)
	f.swap(versionOf(versions[1], 3))
	for _, id := range jobs[:3] {
		f.submit(id, "hold")
	}
	for range 3 { // three at once
		<-versions[1].entered
	}
	f.swap(versionOf(versions[2], 1))
	if n := f.Size(); n != 1 {
		t.Errorf("the pool has %d slots, want 1", n)
	}
	close(versions[1].resume)
	<-versions[1].closed
	f.submit("d", "hold")
	f.submit("e", "hold")
	<-versions[2].entered
	if n := f.Busy(); n != 1 {
		t.Errorf("%d slots are busy, want 1", n)
	}
	close(versions[2].resume)
	for _, id := range jobs {
		f.result(id)
	}
}

func TestCloseLetsTasksEnd(t *testing.T) {
	t.Parallel()
	one := newNumbered(t, 1)
	f := setupSwap(t, versionOf(one, 2), "runs")
	f.submit("runs", "hold")
	<-one.entered
	f.Close()
	f.Close() // twice is fine
	if err := f.Swap(versionOf(newNumbered(t, 2), 1)); err == nil {
		t.Error("a closed pool took a version")
	}
	select {
	case <-f.Ended():
		t.Error("the pool has ended before its task")
	default:
	}
	close(one.resume)
	f.result("runs")
	<-f.Ended()
	<-one.closed
}

// TestSwapHammer swaps under load. No task is lost, none runs on a plugin that
// was closed, and what is submitted after a swap runs on that version or a
// later one.
func TestSwapHammer(t *testing.T) {
	t.Parallel()
	const producers, each, swaps = 3, 150, 40
	var jobs []string
	for i := range producers * each {
		jobs = append(jobs, "job-"+strconv.Itoa(i))
	}
	plugins := make([]*numbered, swaps+1)
	for i := range plugins {
		plugins[i] = newNumbered(t, i)
	}
	f := setupSwap(t, versionOf(plugins[0], 2), jobs...)
	var current atomic.Int64
	least := make([]int64, len(jobs))
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			for i := p * each; i < (p+1)*each; i++ {
				least[i] = current.Load()
				if _, err := f.queue.Submit(t.Context(), jobhost.Spec{ID: jobs[i], Worker: "w"}); err != nil {
					t.Error(err)
				}
				if i%10 == 0 {
					f.result(jobs[i]) // so that slots are idle at times
				}
			}
		})
	}
	group.Go(func() {
		for i := 1; i <= swaps; i++ {
			f.swap(versionOf(plugins[i], i%4+1))
			current.Store(int64(i))
			f.result(jobs[(i-1)*each/swaps])
		}
	})
	group.Wait()
	for i, id := range jobs {
		if n := f.result(id); int64(n) < least[i] {
			t.Errorf("%s was submitted under version %d and ran on %d", id, least[i], n)
		}
	}
	f.stop()
	for _, p := range plugins {
		if !p.isClosed() {
			t.Errorf("version %d is not closed", p.number)
		}
	}
}
