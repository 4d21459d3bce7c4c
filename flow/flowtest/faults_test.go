package flowtest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/flow"
	"github.com/jobhost/jobhost/flow/flowtest"
)

// failing is a test that fails without ending.
type failing struct{ said []string }

func (f *failing) Helper() {}
func (f *failing) Fatalf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *failing) expect(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if len(f.said) != 1 || !strings.Contains(f.said[0], part) {
			t.Errorf("%q is not in %q", part, f.said)
		}
	}
}

func TestFaultsFailTheTest(t *testing.T) {
	t.Parallel()
	wait := define(step("a", nil), jobhost.Step{Name: "wait", Signal: "go", Needs: []string{"a"}}, step("b", nil, "wait"))
	for _, tt := range []struct {
		name string
		do   func(f *failing)
		want []string
	}{
		{"definition", func(f *failing) {
			flowtest.New(f, define(step("a", nil, "b"), step("c", func(s *jobhost.Step) { s.When = "1" }))).Start(nil).Wait()
		}, []string{`workflow "w" has faults`, `steps.a.needs: there is no step "b"`, "not bool"}},
		{"builder", func(f *failing) {
			k := flowtest.Build(f, flow.New("w").Add(step("a", nil), step("a", nil)))
			k.Always("a", 1)
			k.Start(nil).Wait()
		}, []string{`"a" is there already`}},
		{"other", func(f *failing) { flowtest.New(f, define(jobhost.Step{Name: "c", Workflow: "chidl"})) }, []string{`there is no workflow "chidl"`}},
		{"twice", func(f *failing) { flowtest.New(f, wait, wait) }, []string{`two workflows are named "w"`}},
		{"worker", func(f *failing) { flowtest.New(f, wait).Start(nil).Wait() }, []string{`step a of workflow w has worker "a", for which there is no function`}},
		{"waits", func(f *failing) {
			k := flowtest.New(f, wait)
			k.Always("a", 1)
			k.Start(nil).Wait()
		}, []string{"nothing can happen any more", "step wait is running: it waits for signal go", "step b is pending: it needs wait"}},
		{"signal", func(f *failing) { flowtest.New(f, wait).Start(nil).Signal("gone", nil) }, []string{"for which there is no function"}},
		{"no signal", func(f *failing) {
			k := flowtest.New(f, wait)
			k.Always("a", 1)
			k.Start(nil).Signal("gone", nil)
		}, []string{`signal gone of workflow w: no step waits for a signal "gone"`}},
		{"retry", func(f *failing) {
			k := flowtest.New(f, wait)
			k.Always("a", 1)
			k.Start(nil).Retry("a")
		}, []string{"step a has not failed"}},
		{"no step", func(f *failing) {
			k := flowtest.New(f, wait)
			k.Always("a", 1)
			k.Start(nil).Step("x").Output(new(int))
		}, []string{`no step "x"`}},
		{"no output", func(f *failing) {
			k := flowtest.New(f, wait)
			k.Always("a", 1)
			k.Start(nil).Step("b").Output(new(int))
		}, []string{"step b has no output, it is pending"}},
		{"type", func(f *failing) {
			k := flowtest.New(f, wait)
			k.Always("a", "text")
			k.Start(nil).Step("a").Output(new(int))
		}, []string{"the output of step a is not a *int"}},
		{"wait", func(f *failing) {
			k := flowtest.New(f, wait)
			k.Worker("a", func(c *flowtest.Call) (any, error) { return nil, errors.Join(nil, ignore(c.Run.Wait())) })
			k.Start(nil)
		}, []string{"a function can't wait"}},
		{"child", func(f *failing) {
			k := flowtest.New(f, wait)
			k.Always("a", 1)
			k.Start(nil).Child("a").Wait()
		}, []string{"step a of workflow w has not begun a workflow"}},
		{"JSON", func(f *failing) {
			k := flowtest.New(f, wait)
			k.Always("a", func() {})
			k.Start(nil)
		}, []string{"can't be written as JSON"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &failing{}
			tt.do(f)
			f.expect(t, tt.want...)
		})
	}
}

func ignore(*flowtest.Result) error { return nil }
