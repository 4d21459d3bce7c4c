package main

import (
	"context"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// unlucky is a plugin, and its instance, whose first attempts come back.
type unlucky struct {
	returns int
	jobs    []string
	told    func(string)
	reason  string // with which it is disabled when it has returned all; empty = it isn't
}

func (u *unlucky) Info() runtime.Info                                    { return runtime.Info{} }
func (u *unlucky) Instantiate(context.Context) (runtime.Instance, error) { return u, nil }
func (u *unlucky) Close(context.Context) error                           { return nil }
func (u *unlucky) OnDisabled(told func(reason string))                   { u.told = told }
func (u *unlucky) Enable()                                               {}
func (u *unlucky) Run(_ context.Context, at *hostcall.Attempt) runtime.Result {
	u.jobs = append(u.jobs, at.Job)
	if u.returns--; u.returns >= 0 {
		return runtime.Result{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeReturned}}
	}
	if u.reason != "" {
		u.told(u.reason)
		return runtime.Result{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeReturned}}
	}
	return runtime.Result{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeSucceeded}}
}

// TestExecRunsAgainWhatComesBack has attempts come back that are not at fault, and a plugin that can't run any.
func TestExecRunsAgainWhatComesBack(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]*unlucky{"innocent": {returns: 2}, "disabled": {returns: 1, reason: "it crashes"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &batch{flags: &execFlags{}, plugin: u}
			u.OnDisabled(func(reason string) { b.disabled.Store(&reason) })
			sandbox := runtime.NewSandbox(u, nil)
			var first, second item
			b.runItem(t.Context(), sandbox, &first)
			if u.reason != "" {
				if err := outcomeError(&first); first.outcome.Kind != jobhost.OutcomeReturned || err.Error() != ": the plugin can't run anything any more: it crashes" {
					t.Errorf("%v: %v", first.outcome.Kind, err)
				}
				return
			}
			b.runItem(t.Context(), sandbox, &second)
			if first.outcome.Kind != jobhost.OutcomeSucceeded || second.outcome.Kind != jobhost.OutcomeSucceeded {
				t.Errorf("%v, %v", first.outcome.Kind, second.outcome.Kind)
			}
			if len(u.jobs) != 4 || u.jobs[0] != u.jobs[2] || u.jobs[2] == u.jobs[3] {
				t.Errorf("the attempts were of %v: those at one input belong together, and to no other", u.jobs)
			}
		})
	}
}
