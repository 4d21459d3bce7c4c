package scope_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

// journal notes what happened in which order.
type journal struct {
	mu    sync.Mutex // protects notes
	notes []string
}

func (j *journal) note(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notes = append(j.notes, what)
}

func (j *journal) finaliser(what string) scope.Finaliser {
	return func(bool, scope.Status, error) error { j.note(what); return nil }
}

func (j *journal) check(t *testing.T, want ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if diff := cmp.Diff(want, j.notes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestJoinOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		root := scope.New(t.Context(), "root")
		slow := func(what string, d time.Duration) func(context.Context) error {
			return func(context.Context) error { time.Sleep(d); j.note(what); return nil }
		}
		for i, name := range []string{"a", "b", "c"} {
			child := mustChild(t, root, name)
			mustFinally(t, child, j.finaliser(name+"1"))
			mustFinally(t, child, j.finaliser(name+"2"))
			mustGo(t, child, slow(name+" goroutine", time.Duration(9-i)*time.Second)) // the last ends first
		}
		mustFinally(t, root, j.finaliser("root"))
		mustGo(t, root, slow("own goroutine", 20*time.Second))
		join(t, root)
		j.check(t, "c goroutine", "b goroutine", "a goroutine", "own goroutine",
			"a2", "a1", "b2", "b1", "c2", "c1", "root")
	})
}

func TestFinalisersAreTold(t *testing.T) {
	type told struct {
		Aborted bool
		Status  scope.Status
		Primary string
	}
	tests := []struct {
		name string
		do   func(t *testing.T, s *scope.Scope)
		want []told // of two finalisers, of which the first to run fails
	}{
		{"ok", func(*testing.T, *scope.Scope) {}, []told{{false, scope.StatusOK, ""}, {true, scope.StatusFailed, "b"}}},
		{"cancelled", func(_ *testing.T, s *scope.Scope) { s.Cancel(errA) }, []told{{true, scope.StatusCancelled, ""}, {true, scope.StatusCancelled, ""}}},
		{"failed", func(t *testing.T, s *scope.Scope) { mustGo(t, s, failing(errA)) }, []told{{true, scope.StatusFailed, "a"}, {true, scope.StatusFailed, "a"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := scope.New(t.Context(), "root")
				var got []told
				tell := func(err error) scope.Finaliser {
					return func(aborted bool, status scope.Status, primary error) error {
						text := ""
						if primary != nil {
							text = primary.Error()
						}
						got = append(got, told{aborted, status, text})
						return err
					}
				}
				mustFinally(t, s, tell(nil))
				mustFinally(t, s, tell(errB))
				tt.do(t, s)
				synctest.Wait()
				join(t, s)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}

func TestJoinIsNotInterrupted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		s := scope.New(t.Context(), "root")
		mustFinally(t, s, j.finaliser("finaliser"))
		mustGo(t, s, func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Hour) // takes its time
			j.note("goroutine")
			return nil
		})
		out := make(chan scope.Report)
		go func() { out <- join(t, s) }()
		synctest.Wait()
		s.Cancel(errA)
		if r := <-out; r.Status != scope.StatusCancelled {
			t.Errorf("got %v", r.Status)
		}
		j.check(t, "goroutine", "finaliser")
	})
}

func TestJoinWithDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		s := scope.New(context.Background(), "root")
		mustFinally(t, s, j.finaliser("finaliser"))
		mustGo(t, s, func(context.Context) error { time.Sleep(time.Hour); return nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := s.Join(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || r.Status != scope.StatusRunning {
			t.Errorf("got %v, %v", r.Status, err)
		}
		j.check(t)
		if r, err = s.Join(t.Context()); err != nil || r.Status != scope.StatusOK { // the join went on
			t.Errorf("got %v, %v", r.Status, err)
		}
		j.check(t, "finaliser")
		if _, err = s.Join(ctx); err != nil { // once it's through, that is what counts
			t.Errorf("got %v", err)
		}
	})
}

func TestJoinManyTimes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		s := scope.New(t.Context(), "root")
		mustFinally(t, s, j.finaliser("finaliser"))
		gate := make(chan struct{})
		mustGo(t, s, func(context.Context) error { <-gate; return errA })
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				ctx := context.Background()
				if i%2 == 0 {
					ctx = t.Context()
				}
				if r, err := s.Join(ctx); err != nil || !errors.Is(r.Err(), errA) {
					t.Errorf("got %v, %v", r.Err(), err)
				}
			})
		}
		synctest.Wait()
		close(gate)
		wg.Wait()
		j.check(t, "finaliser")
	})
}

func TestJoinOfNothing(t *testing.T) {
	t.Parallel()
	s := scope.New(t.Context(), "root")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	// There is nothing to wait for, so that even an ended context gets the outcome.
	if r, err := s.Join(ended); err != nil || r.Status != scope.StatusOK {
		t.Errorf("got %v, %v", r.Status, err)
	}
	if s.Cancel(errA) || s.Status() != scope.StatusOK {
		t.Errorf("cancelled after the join: %v", s.Status())
	}
}

func TestJoinOp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := scope.New(t.Context(), "root")
		mustGo(t, s, func(context.Context) error { time.Sleep(time.Minute); return nil })
		patient := op.BooleanChoice(
			op.Wrap(s.JoinOp(), func(r scope.Report) (scope.Status, error) { return r.Status, nil }),
			op.Wrap(op.After(time.Second), func(time.Time) (scope.Status, error) { return s.Status(), nil }),
		)
		if got, _ := op.Perform(t.Context(), patient); got.Tag || got.Value != scope.StatusRunning {
			t.Errorf("got %v", got)
		}
		if err := s.Go("", obedient); err == nil {
			t.Error("performing must begin the join, and losing not end it")
		}
		if r, err := op.Perform(t.Context(), s.JoinOp()); err != nil || r.Status != scope.StatusOK {
			t.Errorf("got %v, %v", r, err)
		}
		if _, ok, _ := op.TryPerform(s.JoinOp()); !ok {
			t.Error("not ready after the join")
		}
	})
}

func TestGoexitInFinalisers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		root := scope.New(t.Context(), "root")
		mustFinally(t, root, j.finaliser("root"))
		for _, name := range []string{"a", "b"} {
			child := mustChild(t, root, name)
			mustFinally(t, child, j.finaliser(name+"1"))
			mustFinally(t, child, func(bool, scope.Status, error) error { runtime.Goexit(); return nil })
			mustFinally(t, child, j.finaliser(name+"3"))
		}
		go root.Join(context.Background()) //nolint:errcheck // doesn't return
		r, err := root.Join(t.Context())
		j.check(t, "a3", "a1", "b3", "b1", "root")
		if err != nil || r.Status != scope.StatusOK || !errors.Is(r.Children[1].Err(), scope.ErrGoexit) {
			t.Errorf("got %v, %v, %v", r.Status, r.Children, err)
		}
	})
}

func TestReportTree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		root := scope.New(t.Context(), "root")
		a, b := mustChild(t, root, "a"), mustChild(t, root, "b")
		mustGo(t, mustChild(t, b, "bb"), failing(errA))
		c := mustChild(t, root, "c")
		join(t, c) // early, and before its elder siblings
		c.Cancel(nil)
		a.Cancel(errB)
		r := join(t, root)
		var show func(r scope.Report) string
		show = func(r scope.Report) string {
			text := fmt.Sprintf("%s %v %v", r.Name, r.Status, r.Err())
			for _, child := range r.Children {
				text += " (" + show(child) + ")"
			}
			return text
		}
		want := "root ok <nil> (a cancelled scope a cancelled: b) (b ok <nil> (bb failed a)) (c ok <nil>)"
		if got := show(r); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func TestManyChildren(t *testing.T) {
	t.Run("forgotten", func(t *testing.T) {
		t.Parallel()
		root := scope.New(t.Context(), "root")
		const n = 100_000
		for i := range n {
			child := mustChild(t, root, "child", scope.Forget())
			if i%10 == 0 {
				child.Cancel(nil)
			}
			join(t, child)
		}
		r := join(t, root)
		if len(r.Children) != 0 || r.Omitted != (scope.Omitted{OK: n - n/10, Cancelled: n / 10}) {
			t.Errorf("%d children, %+v", len(r.Children), r.Omitted)
		}
	})
	t.Run("kept up to a limit, what went wrong longest", func(t *testing.T) {
		t.Parallel()
		root := scope.New(t.Context(), "root")
		var failed []uint64
		for i := range 3 * scope.MaxChildReports {
			res := scope.Run(root, "child", func(context.Context, *scope.Scope) (int, error) {
				if i%100 == 99 {
					return 0, errA
				}
				return 1, nil
			})
			if res.Err() != nil {
				failed = append(failed, res.ID)
			}
		}
		r := join(t, root)
		var kept []uint64
		for i, child := range r.Children {
			if child.Err() != nil {
				kept = append(kept, child.ID)
			}
			if i > 0 && child.ID <= r.Children[i-1].ID {
				t.Error("not in the order of attachment")
			}
		}
		if !slices.Equal(kept, failed) || len(r.Children) != scope.MaxChildReports || r.Omitted.OK != 2*scope.MaxChildReports {
			t.Errorf("kept %v of %v, %d children, %+v", kept, failed, len(r.Children), r.Omitted)
		}
	})
	t.Run("all failed", func(t *testing.T) {
		t.Parallel()
		root := scope.New(t.Context(), "root")
		for range scope.MaxChildReports + 3 {
			scope.Run(root, "child", func(context.Context, *scope.Scope) (int, error) { return 0, errA })
		}
		if r := join(t, root); len(r.Children) != scope.MaxChildReports || r.Omitted.Failed != 3 {
			t.Errorf("%d children, %+v", len(r.Children), r.Omitted)
		}
	})
}
