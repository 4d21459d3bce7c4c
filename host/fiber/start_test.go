package fiber_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
)

// TestEnds: how a fiber ends is what its body did.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		body    fiber.Body
		status  jobhost.FiberStatus
		result  string
		failure string // code
		log     string // what there must be in it
	}{
		{name: "returned", body: returns("42"), status: jobhost.FiberCompleted, result: "42"},
		{name: "failed", body: fails, status: jobhost.FiberFailed, failure: "broken"},
		{
			name: "panicked", status: jobhost.FiberFailed, failure: jobhost.FailInternal, log: "secret",
			body: func(context.Context, *fiber.Fiber) ([]byte, *jobhost.Failure) { panic("a secret") },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := setup(t)
				f.start("a", tt.body)
				end := f.end("a")
				if end.Status != tt.status || string(end.Result) != tt.result || end.EndedAt == nil || end.StartedAt == nil {
					t.Errorf("it ended as %+v", end)
				}
				if got := f.get("a"); got.Status != tt.status {
					t.Errorf("it is remembered as %s", got.Status)
				}
				failure := ""
				if end.Failure != nil {
					if failure = end.Failure.Code; end.Failure.Attempt != 1 || end.Failure.EndedAt.IsZero() {
						t.Errorf("failure %+v", end.Failure)
					}
					if strings.Contains(end.Failure.Message, "secret") || end.Failure.Stack != "" {
						t.Errorf("strangers are told %q", end.Failure.Message)
					}
				}
				if failure != tt.failure {
					t.Errorf("failure %q, want %q", failure, tt.failure)
				}
				if !strings.Contains(f.log.String(), tt.log) {
					t.Errorf("the log is %s", f.log.String())
				}
				f.wantTerminated("a", 1)
				if s := f.Stats(); s != (fiber.Stats{Ended: 1}) {
					t.Errorf("stats %+v", s)
				}
			})
		})
	}
}

func TestStartIsIdempotent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		s := spec("a")
		s.Init, s.Labels = []byte("init"), map[string]string{"k": "v"}
		first := f.startSpec(s, echo)
		s.Restart = jobhost.RestartPolicy{When: jobhost.RestartNever} // what the default is
		if again := f.startSpec(s, fails); !again.CreatedAt.Equal(first.CreatedAt) || again.Status.Ended() {
			t.Errorf("the second start returned %+v", again)
		}
		for name, change := range map[string]func(*jobhost.FiberSpec){
			"worker":  func(s *jobhost.FiberSpec) { s.Worker = "x" },
			"entry":   func(s *jobhost.FiberSpec) { s.Entry = "x" },
			"init":    func(s *jobhost.FiberSpec) { s.Init = []byte("x") },
			"labels":  func(s *jobhost.FiberSpec) { s.Labels = nil },
			"restart": func(s *jobhost.FiberSpec) { s.Restart.When = jobhost.RestartAlways },
		} {
			other := s
			change(&other)
			_, err := f.Start(t.Context(), other, echo, nil)
			if wantCode(t, err, jobhost.CodeConflict, false); jobhost.HintOf(err) == "" {
				t.Errorf("another %s: no hint in %v", name, err)
			}
		}
		if s := f.Stats(); s.Live != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestStartOfNonsense(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		_, err := f.Start(t.Context(), jobhost.FiberSpec{Worker: "w"}, echo, nil)
		wantCode(t, err, jobhost.CodeInvalid, false)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err = f.Start(ctx, spec("a"), echo, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("a start without time: %v", err)
		}
		_, err = f.Fiber(t.Context(), "a")
		wantCode(t, err, jobhost.CodeNotFound, false)
	})
}

// TestPermitsAreGivenInOrder: who comes first runs first.
func TestPermitsAreGivenInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t, func(c *fiber.Config) { c.Max = 1 })
		gates := map[string]gate{}
		done := map[string]<-chan error{}
		for _, id := range []string{"a", "b", "c"} {
			gates[id] = make(gate)
			done[id] = f.begin(t.Context(), id, gates[id].body)
			synctest.Wait()
		}
		f.wantStatus("a", jobhost.FiberRunning)
		f.wantStatus("b", jobhost.FiberStarting)
		f.wantStatus("c", jobhost.FiberStarting)
		close(gates["a"])
		f.wantStatus("b", jobhost.FiberRunning)
		f.wantStatus("c", jobhost.FiberStarting)
		close(gates["b"])
		f.wantStatus("c", jobhost.FiberRunning)
		close(gates["c"])
		for id, d := range done {
			if err := <-d; err != nil {
				t.Errorf("start of %s: %v", id, err)
			}
		}
		f.end("c")
	})
}

func TestFailWhenFull(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t, func(c *fiber.Config) { c.Max, c.FailWhenFull = 1, true })
		f.start("a", echo)
		_, err := f.Start(t.Context(), spec("b"), echo, nil)
		if wantCode(t, err, jobhost.CodeExhausted, false); jobhost.HintOf(err) == "" {
			t.Error("no hint")
		}
		if f.start("a", echo); f.refused[fiber.LimitFibers] != 1 {
			t.Errorf("refused %v", f.refused)
		}
		_, err = f.Fiber(t.Context(), "b")
		wantCode(t, err, jobhost.CodeNotFound, false)
	})
}

// TestWaitForPermitIsGivenUp: the fiber stays while any start waits for it.
func TestWaitForPermitIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t, func(c *fiber.Config) { c.Max = 1 })
		g := make(gate)
		f.start("a", g.body)
		ctx, cancel := context.WithCancel(t.Context())
		first := f.begin(ctx, "b", returns(""))
		synctest.Wait()
		second := f.begin(t.Context(), "b", returns(""))
		alone, cancelAlone := context.WithCancel(t.Context())
		third := f.begin(alone, "c", returns(""))
		synctest.Wait()
		waited := make(chan error, 1)
		go func() {
			_, err := f.Wait(t.Context(), "c")
			waited <- err
		}()
		synctest.Wait()
		cancel()
		cancelAlone()
		if err := errors.Join(<-first, <-third); !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up got %v", err)
		}
		wantCode(t, <-waited, jobhost.CodeNotFound, false)
		f.wantStatus("b", jobhost.FiberStarting)
		_, err := f.Fiber(t.Context(), "c")
		wantCode(t, err, jobhost.CodeNotFound, false)
		close(g)
		if err := <-second; err != nil {
			t.Errorf("who waited on got %v", err)
		}
		f.end("b")
		f.wantTerminated("b", 1)
		f.wantTerminated("c", 0)
	})
}

// TestSecondStartOfWaiting: both have the same outcome.
func TestSecondStartOfWaiting(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(map[bool]string{false: "runs", true: "killed"}[killed], func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := setup(t, func(c *fiber.Config) { c.Max = 1 })
				g := make(gate)
				f.start("a", g.body)
				first := f.begin(t.Context(), "b", deaf)
				second := f.begin(t.Context(), "b", deaf)
				synctest.Wait()
				if _, err := f.Start(t.Context(), jobhost.FiberSpec{ID: "b", Worker: "other"}, deaf, nil); jobhost.CodeOf(err) != jobhost.CodeConflict {
					t.Errorf("a start with another spec: %v", err)
				}
				if !killed {
					close(g)
					if err := errors.Join(<-first, <-second); err != nil {
						t.Error(err)
					}
					f.wantStatus("b", jobhost.FiberRunning)
					return
				}
				if _, err := f.InterruptFiber(t.Context(), "b"); err != nil {
					t.Error(err)
				}
				wantCode(t, <-first, jobhost.CodeConflict, true)
				wantCode(t, <-second, jobhost.CodeConflict, true)
				f.wantStatus("b", jobhost.FiberKilled)
				f.wantTerminated("b", 1)
				if s := f.Stats(); s != (fiber.Stats{Live: 1, Ended: 1}) {
					t.Errorf("stats %+v", s)
				}
				close(g)
				f.start("b", returns("")) // the id is free
			})
		})
	}
}

// TestStartOfOneThatIsEnding waits for the end and begins then.
func TestStartOfOneThatIsEnding(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		before := f.start("a", deaf)
		synctest.Wait()
		if _, err := f.InterruptFiber(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		next := spec("a")
		next.Worker = "other"
		after := f.startSpec(next, echo)
		if d := after.CreatedAt.Sub(before.CreatedAt); d != grace || after.Worker != "other" {
			t.Errorf("%v after the first there is %+v", d, after)
		}
		f.wantTerminated("a", 1)
	})
}

// TestGoexit: a body that ends its goroutine leaves no fiber behind.
func TestGoexit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		// The scope fails by it, but not those above.
		f := setup(t, func(c *fiber.Config) { c.Scope, _ = c.Scope.Child("fibers") })
		f.start("a", func(context.Context, *fiber.Fiber) ([]byte, *jobhost.Failure) {
			runtime.Goexit()
			return nil, nil
		})
		if end := f.end("a"); end.Status != jobhost.FiberFailed || end.Failure.Code != jobhost.FailInternal {
			t.Errorf("it ended as %+v", end)
		}
		f.wantTerminated("a", 1)
	})
}

// TestHistoryIsBounded: by number and by bytes, oldest first, one for each id.
func TestHistoryIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t, func(c *fiber.Config) { c.History, c.HistoryBytes = 3, 10 })
		run := func(id, result string) {
			f.start(id, returns(result))
			f.end(id)
		}
		want := func(want string) {
			t.Helper()
			page, err := f.Fibers(t.Context(), jobhost.FiberFilter{})
			if got := ids(page); got != want || err != nil {
				t.Errorf("remembered are %s, want %s: %v", got, want, err)
			}
		}
		run("a", "")
		run("b", "")
		run("c", "")
		want("a b c")
		run("a", "")
		run("d", "")
		want("a c d")
		run("e", "12345")
		run("f", "123456")
		want("f")
		run("g", "12345678901")
		want("g")
	})
}

func ids(page jobhost.FiberPage) string {
	var all []string
	for _, f := range page.Fibers {
		all = append(all, f.ID)
	}
	return strings.Join(all, " ")
}

func TestList(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t, func(c *fiber.Config) { c.Max, c.History = 100, 100 })
		for _, id := range strings.Split("k b e h a n c m d g i j f l", " ") {
			switch {
			case id > "i":
				s := spec(id)
				s.Worker = "other"
				f.startSpec(s, returns(""))
				f.end(id)
			default:
				f.start(id, echo)
			}
		}
		synctest.Wait()
		for _, tt := range []struct {
			filter jobhost.FiberFilter
			want   string
			next   string
		}{
			{jobhost.FiberFilter{}, "a b c d e f g h i j k l m n", ""},
			{jobhost.FiberFilter{Limit: 3}, "a b c", "c"},
			{jobhost.FiberFilter{Limit: 3, Cursor: "c"}, "d e f", "f"},
			{jobhost.FiberFilter{Limit: 3, Cursor: "k"}, "l m n", ""},
			{jobhost.FiberFilter{Cursor: "n"}, "", ""},
			{jobhost.FiberFilter{Worker: "other"}, "j k l m n", ""},
			{jobhost.FiberFilter{Status: jobhost.FiberIdle, Limit: 2, Cursor: "g"}, "h i", ""},
			{jobhost.FiberFilter{Status: jobhost.FiberCompleted, Worker: "w"}, "", ""},
		} {
			page, err := f.Fibers(t.Context(), tt.filter)
			if got := ids(page); got != tt.want || page.Next != tt.next || err != nil {
				t.Errorf("%+v: %q next %q, want %q next %q: %v", tt.filter, got, page.Next, tt.want, tt.next, err)
			}
		}
		_, err := f.Fibers(t.Context(), jobhost.FiberFilter{Limit: -1})
		wantCode(t, err, jobhost.CodeInvalid, false)
	})
}
