package machine_test

import "testing"

// TestRules goes through scripts for each of the rules. See [site.play].
func TestRules(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, define, script string }{
		{"one after the other", "a\nb<a\nc<b", `
			start
			= a:running b:pending c:pending
			> submit a.1
			! start
			ok a
			> submit b.1
			! ok a.1
			! dead a.1
			! ok c.1
			ok b
			ok c
			> workflow:completed
			output "c.1"
			! ok c.1
			! cancel`},
		{"a level at a time", "a\nb<a\nc<a\nd<b c", `
			start
			ok a
			= a:completed b:running c:running d:pending
			ok c
			= a:completed b:running c:completed d:pending
			ok b
			> submit d.1
			ok d
			> workflow:completed`},
		{"max_parallel takes the first of the definition", "|max=2\na\nb\nc\nd", `
			start
			= a:running b:running c:pending d:pending
			ok b
			= a:running b:completed c:running d:pending
			ok a
			ok c
			ok d
			output {"a":"a.1","b":"b.1","c":"c.1","d":"d.1"}`},
		{"max_parallel doesn't count who waits", "|max=1\na|signal=x\nb|sleep=1s\nc\nd|child", `
			start
			= a:running b:running c:running d:pending
			ok c
			= a:running b:running c:completed d:running`},
		{"a false condition skips what needs it", "a\nb<a|when=false\nc<b\nd<a", `
			start
			ok a
			= a:completed b:skipped c:skipped d:running
			ok d
			output {"c":null,"d":"d.1"}`},
		{"run if not all was skipped", "a|when=false\nb\nc<a b|run\nd<a|run\ne<a|always", `
			start
			= a:skipped b:running c:pending d:skipped e:running
			ok b
			= a:skipped b:completed c:running d:skipped e:running`},
		{"all skipped is completed", "a|when=false\nb<a", `
			start
			> workflow:completed
			output null`},
		{"failure fails the workflow and cancels the rest", "a\nb\nc<a b\nd|sleep=1h\ne|child\nf|signal=x|limit=1h", `
			start
			dead a
			= a:failed b:cancelled c:cancelled d:cancelled e:cancelled f:cancelled
			> cancel b.1
			> stop e.1
			> workflow:failed
			failure boom a
			! ok b.1
			! dead a.1
			- conflict signal x`},
		{"on_error continue", "a|continue\nb<a", `
			start
			dead a
			= a:failed b:running
			ok b
			> workflow:completed`},
		{"fallback step", "a|fallback=f\nf\nb<a", `
			start
			= a:running f:pending b:pending
			dead a
			= a:running f:running b:pending
			! ok a.1
			ok f
			= a:completed f:completed b:running
			ok b
			output "b.1"`},
		{"the fallback's output is the step's", "a|fallback=f|output\nf\nb<a", `
			start
			dead a
			ok f
			ok b
			output "f.1"`},
		{"fallback step that isn't needed", "a|fallback=f\nf|fallback=g\ng\nb<a", `
			start
			ok a
			= a:completed f:skipped g:skipped b:running`},
		{"both fail", "a|fallback=f\nf\nb<a", `
			start
			dead a
			dead f
			= a:failed f:failed b:cancelled
			failure boom f`},
		{"fallback of a fallback", "a|fallback=f\nf|fallback=g\ng\nb<a", `
			start
			dead a
			dead f
			= a:running f:running g:running b:pending
			ok g
			= a:completed f:completed g:completed b:running`},
		{"fallback step with a need", "a|fallback=f\nc\nf<c\nb<a", `
			start
			dead a
			= a:running c:running f:pending b:pending
			ok c
			= a:running c:completed f:running b:pending`},
		{"fallback step whose condition is false", "a|fallback=f\nf|when=false", `
			start
			dead a
			= a:failed f:skipped
			failure boom a`},
		{"fallback step that is cancelled", "a|fallback=f|continue\nf|fallback=g\ng\nb<a", `
			start
			dead a
			gone f
			= a:failed f:cancelled g:skipped b:running`},
		{"fallback worker", "a|fallback=worker\nb<a", `
			start
			dead a
			> submit a.f1
			= a:running b:pending
			! ok a.1
			ok a
			= a:completed b:running
			ok b`},
		{"both workers fail", "a|fallback=worker|continue\nb<a", `
			start
			dead a
			dead a
			= a:failed b:running`},
		{"terminate", "a|terminate=true|fallback=f\nf\nb\nc<a", `
			start
			ok a
			= a:completed f:cancelled b:cancelled c:cancelled
			> cancel b.1
			~ submit c.1
			output "a.1"`},
		{"no termination", "a|terminate=false\nb<a", `
			start
			ok a
			= a:completed b:running`},
		{"expressions that fail", "a|when=error|continue\nb|input=error|continue\nc|fanout=error|continue\nd|terminate=error|continue\ne", `
			start
			= a:failed b:failed c:failed d:running e:running
			ok d
			= a:failed b:failed c:failed d:failed e:running`},
		{"an expression that fails has a fallback", "a|when=error|fallback=w\nb|terminate=error|fallback=f\nf", `
			start
			> submit a.f1
			ok b
			> submit f.1
			ok f
			= a:cancelled b:failed f:completed
			failure expression terminate: no such key: x`},
		{"a failing condition fails the workflow", "a\nb<a|when=error\nc<a", `
			start
			ok a
			= a:completed b:failed c:cancelled
			failure expression when: no such key: x`},
		{"fan-out", "a|fanout=3\nb<a", `
			start
			ok a
			ok b`},
		{"fan-out over nothing", "a|fanout=0|limit=1s\nb<a", `
			start
			= a:completed b:running
			~ submit a.1
			ok b
			output "b.1"`},
		{"an empty list is an output", "a|fanout=0", `
			start
			output []`},
		{"a step's time", "a|limit=10s|continue\nb<a", `
			start
			due a limit
			> cancel a.1
			= a:failed b:running`},
		{"a step's time ends with it", "a|limit=10s\nb<a", `
			start
			ok a
			! due a.1 limit
			= a:completed b:running`},
		{"the fallback has its own time", "a|limit=10s|fallback=w", `
			start
			due a.1 limit
			! due a.1 limit
			due a.f1 limit
			failure timeout the step took longer than 10s`},
		{"sleep", "a|sleep=10s\nb<a", `
			start
			! due a.2 wake
			due a wake
			= a:completed b:running
			! due a.1 wake
			ok b`},
		{"the workflow's time", "|timeout=1m\na\nb|sleep=1s", `
			start
			due
			> cancel a.1
			> workflow:failed
			failure timeout the workflow ran longer than 1m0s`},
		{"cancel", "|timeout=1m\na\nb|sleep=1s\nc|child\nd<a", `
			start
			cancel
			= a:cancelled b:cancelled c:cancelled d:cancelled
			> workflow:cancelled
			! cancel
			! ok a.1
			- conflict retry`},
		{"a job that is cancelled by hand", "a|fallback=f\nf\nb", `
			start
			gone a
			= a:cancelled f:skipped b:cancelled
			failure cancelled its job was cancelled`},
		{"one whose cancellation doesn't matter", "a|continue\nb<a", `
			start
			gone a
			= a:cancelled b:running`},
		{"retrying", "a\nb<a", `
			start
			retrying a
			= a:retrying b:pending
			! retrying a
			ok a
			= a:completed b:running`},
		{"a fallback waits for its turn", "|max=1\na|signal=x|limit=1s|fallback=w\nb\nc<a", `
			start
			due a limit
			= a:pending b:running c:pending
			ok b
			> submit a.f1
			ok a
			= a:completed b:completed c:running`},
		{"an empty fan-out that fails has one fallback", "a|fanout=0|terminate=error|fallback=w", `
			start
			= a:failed
			failure expression terminate: no such key: x`},
		{"a job of several tasks", "a|tasks=3", `
			start
			ok a
			output "a.1"`},
		{"sub-workflow", "a|child\nb<a", `
			start
			> begin a.1
			! ok a.1
			completed a
			= a:completed b:running
			ok b`},
		{"sub-workflow that fails", "a|child|fallback=f\nf|child\nb<a", `
			start
			failed a
			cancelled f
			= a:failed f:cancelled b:cancelled
			failure cancelled its workflow was cancelled`},
		{"output by an expression", "|output=ok\na\nb<a|when=false", `
			start
			ok a
			output {"a":"a.1","b":null}`},
		{"an output that fails", "|output=error\na", `
			start
			ok a
			= a:completed
			failure expression output: no such key: x
			- conflict retry a`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			define(t, tc.define).play(t, tc.script)
		})
	}
}
