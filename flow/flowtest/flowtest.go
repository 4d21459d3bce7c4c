// Package flowtest tests workflows without a host: it runs a definition by the rules
// of the host, with Go functions instead of workers, in simulated time.
//
//	k := flowtest.New(t, order)
//	k.Worker("payments", func(c *flowtest.Call) (any, error) {
//		c.Takes(2 * time.Second)
//		return map[string]any{"paid": true}, nil
//	})
//	k.Always("parcels", "sent")
//	run := k.Start(map[string]any{"amount": 12})
//	run.Advance(time.Hour)
//	run.Signal("approved", nil)
//	result := run.Wait()
//
// Nothing sleeps: when everything that can happen at one time has happened, the time
// advances to the next event. Functions are called one at a time, and the same test
// always takes the same course. Simultaneous events happen in the order in which they
// were requested, which for steps is that of the definition.
//
// Conditions, expressions, retries, timeouts, deadlines, signals, fallbacks, fan-outs and
// nested workflows are as in a host. Workers have [jobhost.DefaultRetry] unless set
// otherwise, without jitter. Not simulated are circuit breakers, priorities, rate and
// size limits, and JSON Schemas, which are compared where one step's output is the input
// of another, but not checked against data.
//
// A kit and its runs are not safe for concurrent use.
package flowtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/flow"
	"github.com/jobhost/jobhost/host/workflow/machine"
	"github.com/jobhost/jobhost/host/workflow/plan"
)

// T is what a kit needs of a test, as implemented by *[testing.T], *[testing.B] and *rapid.T.
type T interface {
	Helper()
	// Fatalf reports a fault and ends the test. If it returns, the kit does nothing more.
	Fatalf(format string, args ...any)
}

// Kit runs a workflow for a test.
type Kit struct {
	t       T
	main    string
	flows   map[string]*definition
	workers map[string]Func
	labels  map[string]string
	count   int // of runs started
	now     time.Time
	agenda  agenda
	// busy: an event is being performed, and what a function requests happens after it.
	busy   bool
	failed bool // the test has failed
}

// definition is a workflow that can run.
type definition struct {
	plan    *plan.Plan
	machine *machine.Machine
}

// Epoch is the initial time of a kit.
func Epoch() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// New returns a kit for a workflow. Others are those that are steps of it, or of
// each other. The faults of a definition, all of them, fail the test.
func New(t T, w jobhost.Workflow, others ...jobhost.Workflow) *Kit {
	t.Helper()
	k := &Kit{t: t, main: w.Name, flows: map[string]*definition{}, workers: map[string]Func{}, now: Epoch()}
	all := append([]jobhost.Workflow{w}, others...)
	named := make(map[string]*jobhost.Workflow, len(all))
	for i := range all {
		if named[all[i].Name] != nil {
			k.fatalf("two workflows are named %q", all[i].Name)
			return k
		}
		named[all[i].Name] = &all[i]
	}
	for i := range all {
		p, err := plan.Compile(all[i], plan.Env{Workflows: named})
		if err != nil {
			k.fatalf("workflow %q has faults:%s", all[i].Name, listed(err))
			return k
		}
		c, err := p.Machine()
		if err != nil {
			k.fatalf("workflow %q: %v", all[i].Name, err)
			return k
		}
		k.flows[all[i].Name] = &definition{p, c}
	}
	return k
}

// Build is [New] for workflows from builders, whose mistakes fail the test too.
func Build(t T, b *flow.Builder, others ...*flow.Builder) *Kit {
	t.Helper()
	var all []jobhost.Workflow
	for _, b := range append([]*flow.Builder{b}, others...) {
		w, err := b.Workflow()
		if err != nil {
			t.Fatalf("flowtest: workflow %q was built with mistakes:%s", w.Name, listed(err))
			return &Kit{t: t, failed: true}
		}
		all = append(all, w)
	}
	return New(t, all[0], all[1:]...)
}

// listed formats joined errors, one per line.
func listed(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the tree is walked by hand
		text := ""
		for _, one := range joined.Unwrap() {
			text += listed(one)
		}
		return text
	}
	text := "\n\t"
	if e, ok := err.(*jobhost.Error); ok && e.Field != "" { //nolint:errorlint // as above
		text += e.Field + ": "
	}
	text += err.Error()
	if hint := jobhost.HintOf(err); hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

// Worker sets the function that is called instead of a worker, for all attempts of all
// tasks. Calling a worker without a function fails the test.
func (k *Kit) Worker(name string, f Func) {
	if !k.failed {
		k.workers[name] = f
	}
}

// Always makes a worker return the same result each time, treated like that of a [Func].
func (k *Kit) Always(name string, result any) {
	k.Worker(name, func(*Call) (any, error) { return result, nil })
}

// Labels sets labels of the runs that are started from now on, overriding those of the definition.
func (k *Kit) Labels(labels map[string]string) { k.labels = maps.Clone(labels) }

// Now returns the simulated time.
func (k *Kit) Now() time.Time { return k.now }

// Start begins a run, and performs what happens at once. Input of []byte or [json.RawMessage]
// is used unchanged, anything else as JSON, and nil means no data at all.
func (k *Kit) Start(input any) *Run {
	k.t.Helper()
	k.count++
	r := k.newRun(k.main, fmt.Sprintf("%s%d", jobhost.WorkflowIDPrefix, k.count), k.encode(input), k.labels)
	k.soon(func() { r.deliver(machine.Event{What: machine.Started}) })
	k.settle()
	return r
}

// Advance performs everything that happens within a time. The time is the
// kit's: other runs continue too.
func (k *Kit) Advance(d time.Duration) {
	k.t.Helper()
	if k.busy {
		k.fatalf("a function can't wait for what happens after it: use Takes")
		return
	}
	until := k.now.Add(d)
	for k.happen(until) {
	}
	if !k.failed && k.now.Before(until) {
		k.now = until
	}
}

// encode returns data given by a test.
func (k *Kit) encode(v any) []byte {
	k.t.Helper()
	switch v := v.(type) {
	case nil:
		return nil
	case []byte:
		return slices.Clone(v)
	case json.RawMessage:
		return slices.Clone(v)
	}
	data, err := json.Marshal(v)
	if err != nil {
		k.fatalf("%T can't be written as JSON: %v", v, err)
	}
	return data
}

func (k *Kit) fatalf(format string, args ...any) {
	k.t.Helper()
	if k.failed {
		return
	}
	k.failed = true
	k.t.Fatalf("flowtest: "+format, args...)
}
