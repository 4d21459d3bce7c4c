package fiber_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/host/op"
)

// TestHammerPermits starts 10,000 fibers that end at once, some by panics, with
// four permits; every hundredth on_terminate panics too.
func TestHammerPermits(t *testing.T) {
	t.Parallel()
	const fibers, permits = 10_000, 4
	f := setup(t, func(c *fiber.Config) { c.Max, c.History, c.Logger = permits, fibers, nil })
	var live, most, terminated atomic.Int64
	ends := make([]atomic.Int64, fibers)
	var starters sync.WaitGroup
	for k := range 50 {
		starters.Go(func() {
			for i := k; i < fibers; i += 50 {
				_, err := f.Start(context.Background(), spec(fmt.Sprint("f", i)), func(_ context.Context, self *fiber.Fiber) ([]byte, *jobhost.Failure) {
					now := live.Add(1)
					defer live.Add(-1)
					for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
					}
					if i%3 == 0 {
						runtime.Gosched()
					}
					if i%7 == 0 {
						panic("oh")
					}
					_ = self.Emit([]byte("x"))
					return nil, nil
				}, func(end jobhost.Fiber) error {
					terminated.Add(1)
					ends[i].Add(1)
					if i%100 == 0 {
						panic("oh " + end.ID)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	starters.Wait()
	for i := range fibers {
		end := f.end(fmt.Sprint("f", i))
		if failed := i%7 == 0; failed != (end.Status == jobhost.FiberFailed) {
			t.Errorf("%s ended as %s", end.ID, end.Status)
		}
		if n := ends[i].Load(); n != 1 {
			t.Errorf("on_terminate of %s ran %d times", end.ID, n)
		}
	}
	if n := most.Load(); n > permits || n == 0 {
		t.Errorf("%d were live at one time", n)
	}
	if s := f.Stats(); s != (fiber.Stats{Ended: fibers}) || terminated.Load() != fibers {
		t.Errorf("stats %+v after %d ends", s, terminated.Load())
	}
}

// TestHammerOneID starts one id from everywhere: there is one fiber at a time.
func TestHammerOneID(t *testing.T) {
	t.Parallel()
	f := setup(t, func(c *fiber.Config) { c.Max = 8 })
	for range 200 {
		var bodies atomic.Int64
		var starters sync.WaitGroup
		created := make([]jobhost.Fiber, 16)
		for k := range created {
			starters.Go(func() {
				var err error
				created[k], err = f.Start(t.Context(), spec("one"), func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
					bodies.Add(1)
					return echo(ctx, f)
				}, nil)
				if err != nil {
					t.Error(err)
				}
			})
		}
		starters.Wait()
		for _, c := range created {
			if !c.CreatedAt.Equal(created[0].CreatedAt) {
				t.Errorf("two fibers, of %v and %v", c.CreatedAt, created[0].CreatedAt)
			}
		}
		_, _ = f.InterruptFiber(t.Context(), "one")
		f.end("one")
		if n := bodies.Load(); n > 1 {
			t.Errorf("%d bodies", n)
		}
	}
}

// TestHammerEverything does everything at once to a few ids.
func TestHammerEverything(t *testing.T) {
	t.Parallel()
	f := setup(t, func(c *fiber.Config) { c.Max, c.Grace, c.Logger = 3, 0, nil })
	var begun, ended atomic.Int64
	name := func() string { return fmt.Sprint("f", rand.IntN(6)) }
	body := func(ctx context.Context, self *fiber.Fiber) ([]byte, *jobhost.Failure) {
		for range rand.IntN(5) {
			message, err := op.Perform(ctx, op.Choice(self.Recv(), op.Wrap(self.Interrupted(), func(struct{}) ([]byte, error) { return nil, nil })))
			if err != nil {
				break
			}
			_ = self.Emit(message)
		}
		if rand.IntN(3) == 0 {
			return fails(ctx, self)
		}
		return nil, nil
	}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range 1500 {
				ctx, cancel := context.WithCancel(context.Background())
				s := spec(name())
				s.Restart = jobhost.RestartPolicy{When: jobhost.RestartOnFailure, Initial: jobhost.Duration(1e6), Intensity: 3}
				switch rand.IntN(8) {
				case 0, 1:
					if rand.IntN(4) == 0 {
						go func() { runtime.Gosched(); cancel() }()
					}
					begun.Add(1)
					_, _ = f.Start(ctx, s, body, func(jobhost.Fiber) error { ended.Add(1); return nil })
				case 2, 3:
					go func() { runtime.Gosched(); cancel() }()
					_ = f.SendFiber(ctx, s.ID, []byte("x"), rand.IntN(2) == 0)
				case 4:
					_, _ = f.PauseFiber(t.Context(), s.ID)
					_, _ = f.ResumeFiber(t.Context(), s.ID)
				case 5:
					_, _ = f.InterruptFiber(t.Context(), s.ID)
				case 6:
					if outputs, err := f.Subscribe(jobhost.FiberQuery{ID: s.ID, Replay: true}); err == nil {
						_, _, _ = outputs.TryNext()
						outputs.Close()
					}
				default:
					_, _ = f.Fibers(t.Context(), jobhost.FiberFilter{})
				}
				if s := f.Stats(); s.Live > 3 {
					t.Errorf("%d are live", s.Live)
				}
				cancel()
			}
		})
	}
	// Who waits for a permit that only an interrupt can free is helped.
	over := make(chan struct{})
	var helper sync.WaitGroup
	helper.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				_, _ = f.InterruptFiber(t.Context(), name())
				runtime.Gosched()
			}
		}
	})
	workers.Wait()
	close(over)
	helper.Wait()
	f.Stop()
	f.root.Cancel(nil)
	_, _ = f.root.Join(context.Background())
	f.mu.Lock()
	defer f.mu.Unlock()
	total := int64(0)
	for _, n := range f.endedAs {
		total += int64(n)
	}
	if total != ended.Load() {
		t.Errorf("%d fibers ended, but on_terminate ran %d times", total, ended.Load())
	}
	t.Logf("%d starts, %v, %d restarts", begun.Load(), f.endedAs, f.restarted)
}
