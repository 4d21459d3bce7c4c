package op_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/host/op"
)

// journal notes what happened in which order.
type journal []string

func (j *journal) note(what string) func() { return func() { *j = append(*j, what) } }

func TestOnAbort(t *testing.T) {
	t.Parallel()
	type build func(j *journal) op.Op[int]
	on := func(j *journal, name string, o op.Op[int]) op.Op[int] { return op.OnAbort(o, j.note(name)) }
	ready, idle := op.Always(1), op.Never[int]()
	tests := []struct {
		name string
		o    build
		want journal
	}{
		{"winner alone", func(j *journal) op.Op[int] { return on(j, "a", ready) }, nil},
		{"loser", func(j *journal) op.Op[int] { return op.Choice(ready, on(j, "a", idle)) }, journal{"a"}},
		{
			"inner before outer",
			func(j *journal) op.Op[int] { return op.Choice(on(j, "out", on(j, "in", idle)), ready) },
			journal{"in", "out"},
		},
		{
			"one that covers the winner doesn't fire, its losing part does",
			func(j *journal) op.Op[int] {
				return on(j, "both", op.Choice(on(j, "loser", idle), on(j, "winner", ready)))
			},
			journal{"loser"},
		},
		{
			"once for several losing arms",
			func(j *journal) op.Op[int] { return op.Choice(ready, on(j, "three", op.Choice(idle, idle, idle))) },
			journal{"three"},
		},
		{
			"inner of all arms before outer, arms in order",
			func(j *journal) op.Op[int] {
				return op.Choice(on(j, "out", op.Choice(on(j, "a", idle), idle, on(j, "b", idle))), on(j, "c", idle), ready)
			},
			journal{"a", "b", "out", "c"},
		},
		{
			"through guards and wraps",
			func(j *journal) op.Op[int] {
				guarded := op.Guard(func() op.Op[int] { return on(j, "in", idle) })
				return op.Choice(ready, on(j, "out", op.Wrap(guarded, func(v int) (int, error) { return v, nil })))
			},
			journal{"in", "out"},
		},
		{
			"fallback taken",
			func(j *journal) op.Op[int] {
				return on(j, "around", op.OrElse(on(j, "tried", idle), func() (int, error) { return 2, nil }))
			},
			journal{"tried"},
		},
		{
			"before wraps",
			func(j *journal) op.Op[int] {
				return op.Choice(on(j, "lost", idle), op.Wrap(ready, func(v int) (int, error) { j.note("wrap")(); return v, nil }))
			},
			journal{"lost", "wrap"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var j journal
			o := tt.o(&j)
			for range 2 { // every performing for itself
				j = nil
				mustPerform(t, o)
				if diff := cmp.Diff(tt.want, j); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

func TestWithNack(t *testing.T) {
	t.Parallel()
	var nacks []op.Op[struct{}]
	with := func(o op.Op[int]) op.Op[int] {
		return op.WithNack(func(nack op.Op[struct{}]) op.Op[int] {
			nacks = append(nacks, nack)
			return o
		})
	}
	fired := func() (got []bool) {
		for _, nack := range nacks {
			_, ok, _ := op.TryPerform(nack)
			got = append(got, ok)
		}
		return got
	}
	tests := []struct {
		name string
		o    op.Op[int]
		want []bool // in the order in which they were made: outer first
	}{
		{"won", with(op.Always(1)), []bool{false}},
		{"lost", op.Choice(with(op.Never[int]()), op.Always(1)), []bool{true}},
		{"covers winner and loser", with(op.Choice(op.Never[int](), op.Always(1))), []bool{false}},
		{
			"nested",
			with(op.Choice(with(op.Never[int]()), with(op.Always(1)))),
			[]bool{false, true, false},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nacks = nil
			mustPerform(t, tt.o)
			if got := fired(); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	t.Run("a server learns that its client went elsewhere", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			reply := op.NewChan[int](0)
			request := op.WithNack(func(nack op.Op[struct{}]) op.Op[int] {
				nacks = []op.Op[struct{}]{nack}
				return reply.Recv()
			})
			var elsewhere op.Signal
			client := background(t.Context(), op.BooleanChoice(request,
				op.Wrap(elsewhere.Wait(), func(struct{}) (int, error) { return 0, nil })))
			mustBlock(t, client)
			server := background(t.Context(), nacks[0])
			mustBlock(t, server)
			elsewhere.Fire()
			if r := take(t, client); r.value.Tag {
				t.Error("the client took the reply")
			}
			take(t, server)
		})
	})
}

func TestGuardIsBuiltOncePerPerforming(t *testing.T) {
	bubble(t, func(t *testing.T) {
		built, c := 0, op.NewChan[int](0)
		o := op.Choice(op.Guard(func() op.Op[int] { built++; return c.Recv() }), op.Never[int]())
		out := background(t.Context(), o) // probes, parks and resumes
		mustBlock(t, out)
		mustPerform(t, c.Send(1))
		take(t, out)
		if built != 1 {
			t.Errorf("built %d times in the first performing", built)
		}
		op.TryPerform(o)
		if built != 2 {
			t.Errorf("built %d times in two performings", built)
		}
	})
}

func TestOrElse(t *testing.T) {
	t.Parallel()
	other := func() (int, error) { return -1, nil }
	t.Run("ready", func(t *testing.T) {
		if v := mustPerform(t, op.OrElse(op.Always(1), other)); v != 1 {
			t.Errorf("got %d", v)
		}
	})
	t.Run("not ready", func(t *testing.T) {
		if v := mustPerform(t, op.OrElse(op.Never[int](), other)); v != -1 {
			t.Errorf("got %d", v)
		}
	})
	t.Run("its error is the result", func(t *testing.T) {
		_, err := op.Perform(t.Context(), op.OrElse(op.Never[int](), func() (int, error) { return 0, errTest }))
		if !errors.Is(err, errTest) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("other arms of the choice come before it", func(t *testing.T) {
		o := op.Choice(op.OrElse(op.Never[int](), other), op.Always(1))
		for range 100 {
			if v := mustPerform(t, o); v != 1 {
				t.Fatalf("got %d", v)
			}
		}
	})
}

func TestBracket(t *testing.T) {
	t.Parallel()
	around := func(j *journal, name string, use op.Op[int]) op.Op[int] {
		return op.Bracket(
			func() (string, error) { j.note("acquire " + name)(); return name, nil },
			func(name string, aborted bool) {
				if aborted {
					name += " aborted"
				}
				j.note("release " + name)()
			},
			func(string) op.Op[int] { return use },
		)
	}
	wrap := func(j *journal, name string, o op.Op[int]) op.Op[int] {
		return op.Wrap(o, func(v int) (int, error) { j.note("wrap " + name)(); return v, nil })
	}
	ready, idle := op.Always(1), op.Never[int]()
	tests := []struct {
		name string
		o    func(j *journal) op.Op[int]
		want journal
	}{
		{
			"won: between inner and outer wraps",
			func(j *journal) op.Op[int] { return wrap(j, "out", around(j, "a", wrap(j, "in", ready))) },
			journal{"acquire a", "wrap in", "release a", "wrap out"},
		},
		{
			"lost",
			func(j *journal) op.Op[int] { return op.Choice(around(j, "a", idle), wrap(j, "winner", ready)) },
			journal{"acquire a", "release a aborted", "wrap winner"},
		},
		{
			"nested, won",
			func(j *journal) op.Op[int] { return around(j, "a", around(j, "b", ready)) },
			journal{"acquire a", "acquire b", "release b", "release a"},
		},
		{
			"nested, outer won and inner lost",
			func(j *journal) op.Op[int] { return around(j, "a", op.Choice(around(j, "b", idle), ready)) },
			journal{"acquire a", "acquire b", "release b aborted", "release a"},
		},
		{
			"nested, lost",
			func(j *journal) op.Op[int] { return op.Choice(ready, around(j, "a", around(j, "b", idle))) },
			journal{"acquire a", "acquire b", "release b aborted", "release a aborted"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var j journal
			mustPerform(t, tt.o(&j))
			if diff := cmp.Diff(tt.want, j); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	t.Run("what can't be acquired isn't released", func(t *testing.T) {
		o := op.Bracket(func() (int, error) { return 0, errTest },
			func(int, bool) { t.Error("released") },
			func(int) op.Op[int] { t.Error("used"); return op.Always(1) })
		if _, err := op.Perform(t.Context(), o); !errors.Is(err, errTest) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("finally", func(t *testing.T) {
		var got []bool
		o := op.Finally(op.Always(1), func(aborted bool) { got = append(got, aborted) })
		mustPerform(t, o)
		op.TryPerform(op.Finally(op.Never[int](), func(aborted bool) { got = append(got, aborted) }))
		if !slices.Equal(got, []bool{false, true}) {
			t.Errorf("got %v", got)
		}
	})
}

// TestPanics checks that a panic of a user function passes through and leaves
// neither a registration nor a resource behind.
func TestPanics(t *testing.T) {
	t.Parallel()
	boom := func(...any) { panic("boom") }
	tests := []struct {
		name string
		o    func(j *journal, c *op.Chan[int]) op.Op[int]
		want journal
	}{
		{"guard", func(j *journal, c *op.Chan[int]) op.Op[int] {
			return op.Choice(c.Recv(), op.Finally(op.Always(1), release(j, "a")), op.Guard(func() op.Op[int] { boom(); return c.Recv() }))
		}, journal{"a true"}},
		{"use", func(j *journal, c *op.Chan[int]) op.Op[int] {
			inner := op.Bracket(func() (int, error) { return 0, nil },
				func(_ int, aborted bool) { release(j, "inner")(aborted) },
				func(int) op.Op[int] { boom(); return c.Recv() })
			return op.OnAbort(op.Finally(inner, release(j, "outer")), j.note("around"))
		}, journal{"inner true", "outer true", "around"}},
		{"wrap", func(j *journal, _ *op.Chan[int]) op.Op[int] {
			return op.Finally(op.Wrap(op.Always(1), func(int) (int, error) { boom(); return 0, nil }), release(j, "a"))
		}, journal{"a false"}},
		{"try", func(j *journal, _ *op.Chan[int]) op.Op[int] {
			return op.Finally(op.New(func() (int, bool, error) { boom(); return 0, false, nil }, nil), release(j, "a"))
		}, journal{"a true"}},
		{"block", func(j *journal, c *op.Chan[int]) op.Op[int] {
			bad := op.New(func() (int, bool, error) { return 0, false, nil }, func(*op.Waiter[int]) { boom() })
			return op.Finally(op.Choice(c.Recv(), bad, c.Recv()), release(j, "a"))
		}, journal{"a true"}},
		{"on abort, twice: the others still fire", func(j *journal, c *op.Chan[int]) op.Op[int] {
			return op.Choice(
				op.OnAbort(c.Recv(), func() { boom() }),
				op.Finally(c.Recv(), release(j, "lost")),
				op.Finally(op.Always(1), release(j, "won")),
				op.OnAbort(c.Recv(), func() { boom() }),
				op.OnAbort(c.Recv(), j.note("last")),
			)
		}, journal{"lost true", "last", "won false"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var j journal
			c := op.NewChan[int](0)
			func() {
				defer func() {
					if r := recover(); r != "boom" {
						t.Errorf("recovered %v", r)
					}
				}()
				_, _ = op.Perform(t.Context(), tt.o(&j, c))
			}()
			if diff := cmp.Diff(tt.want, j); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			mustBeEmpty(t, c)
		})
	}
}

func TestPanicWhileWithdrawing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c, j := op.NewChan[int](0), journal{}
	bad := op.New(
		func() (int, bool, error) { return 0, false, nil },
		func(w *op.Waiter[int]) { w.OnAbort(func() { panic("boom") }) })
	defer func() {
		if r := recover(); r != "boom" {
			t.Errorf("recovered %v", r)
		}
		mustBeEmpty(t, c)
		if diff := cmp.Diff(journal{"a true"}, j); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}()
	last := op.New(
		func() (int, bool, error) { return 0, false, nil },
		func(*op.Waiter[int]) { cancel() })
	_, _ = op.Perform(ctx, op.Finally(op.Choice(bad, bad, c.Recv(), last), release(&j, "a")))
}

func release(j *journal, name string) func(bool) {
	return func(aborted bool) {
		if aborted {
			j.note(name + " true")()
		} else {
			j.note(name + " false")()
		}
	}
}
