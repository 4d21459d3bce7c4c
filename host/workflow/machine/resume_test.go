package machine_test

import "testing"

func TestSignals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, define, script string }{
		{"to a step that waits", "a|signal=x\nb<a", `
			start
			= a:running b:pending
			signal x
			= a:completed b:running
			- not_found signal y
			ok b
			output "b.1"`},
		{"before it waits", "a\nb<a|signal=x|limit=1s|output", `
			start
			signal x 1
			! signal x 1
			ok a
			= a:completed b:completed
			output "yes"`},
		{"each is for one step", "a|signal=x\nb|signal=x\nc<b|signal=x", `
			start
			signal x 1
			= a:completed b:running c:pending
			! signal x 1
			signal x 2
			= a:completed b:completed c:running
			signal x
			output {"a":"yes","c":"yes"}`},
		{"none comes in time", "a|signal=x|limit=1m|fallback=f\nf\nb<a", `
			start
			due a limit
			= a:running f:running b:pending
			signal x
			= a:running f:running b:pending
			ok f
			= a:completed f:completed b:running`},
		{"none comes at all", "a|signal=x|limit=1m", `
			start
			due a limit
			failure timeout no signal x has come within 1m0s
			retry
			signal x
			output "yes"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			define(t, tc.define).play(t, tc.script)
		})
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, define, script string }{
		{"a failed workflow goes on where it stood", "|timeout=1h\na\nb<a\nc<a\nd<b c\ne", `
			start
			ok e
			ok a
			dead b
			= a:completed b:failed c:cancelled d:cancelled e:completed
			revive b
			> resumed
			> submit c.2
			~ submit b.2
			= a:completed b:running c:running d:pending e:completed
			! ok c.1
			ok b
			ok c
			ok d
			> workflow:completed`},
		{"it may fail again", "a\nb", `
			start
			dead a
			revive a
			dead b
			= a:cancelled b:failed
			! revive a.1
			revive b
			> submit a.2
			ok b
			ok a`},
		{"a fallback waits again", "a|fallback=f\nf|fallback=w\nb<a", `
			start
			dead a
			dead f
			dead f
			= a:failed f:failed b:cancelled
			revive a
			= a:running f:pending b:pending
			dead a
			> submit f.2
			dead f
			> submit f.f2
			ok f
			= a:completed f:completed b:running`},
		{"the fallback's job", "a|fallback=w\nb<a", `
			start
			dead a
			dead a
			revive a.f1
			= a:running b:pending
			ok a
			= a:completed b:running
			! revive a.1`},
		{"the fallback step's job", "a|fallback=f\nf\nb<a", `
			start
			dead a
			dead f
			revive f
			= a:running f:running b:pending
			ok f
			= a:completed f:completed b:running`},
		{"not while the fallback runs", "a|fallback=w", `
			start
			dead a
			! revive a.1`},
		{"not when others went on", "a|continue\nb<a\nc", `
			start
			dead a
			! revive a
			- conflict retry a`},
		{"while others are still pending", "a|continue\nb\nc<a b", `
			start
			dead a
			revive a
			= a:running b:running c:pending
			ok b
			= a:running b:completed c:pending
			ok a
			= a:completed b:completed c:running`},
		{"a step that waits for its turn waits on", "|max=1\na|continue\nb\nc<a", `
			start
			dead a
			= a:failed b:running c:pending
			revive a
			ok b
			= a:running b:completed c:pending
			ok a
			> submit c.1`},
		{"not when it was called off", "a\nb", `
			start
			cancel
			! revive a.1
			- conflict retry a`},
		{"a cancelled job", "a\nb", `
			start
			gone a
			revive a
			= a:running b:running
			ok a
			ok b`},
		{"a revived job has no deadline", "a|limit=1s", `
			start
			dead a
			revive a
			! due a.1 limit
			ok a`},
		{"retry with a new job", "a|limit=1s\nb", `
			start
			due a limit
			retry a
			> submit a.2
			> submit b.2
			- conflict retry a
			- conflict retry
			ok a
			ok b`},
		{"retry what failed", "a|fallback=f\nf\nb", `
			start
			dead a
			dead f
			retry
			= a:running f:pending b:running
			ok a
			= a:completed f:skipped b:running`},
		{"retry a fallback", "a|fallback=f\nf\nb", `
			start
			dead a
			dead f
			retry f
			= a:running f:running b:running
			ok f
			= a:completed f:completed b:running`},
		{"a fallback is not alone to blame", "a|continue\nb\nc<a b", `
			start
			dead a
			dead b
			- conflict retry a
			! revive a
			revive b
			revive a
			= a:running b:running c:pending`},
		{"a sub-workflow goes on", "a|child\nb<a", `
			start
			failed a
			resumed a
			> resumed
			= a:running b:pending
			completed a
			= a:completed b:running`},
		{"a timeout", "|timeout=1m\na\nb<a", `
			start
			due
			retry
			> submit a.2
			! due
			ok a
			ok b`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			define(t, tc.define).play(t, tc.script)
		})
	}
}
