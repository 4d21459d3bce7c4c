// Package machine decides what becomes of a running workflow: a state machine
// without I/O, clock and memory of its own.
//
// The truth about a running workflow is one record. Inside the transaction in
// which something happens to it, the store reads the record, calls
// [Machine.Advance] and writes back what that returns, together with the jobs
// that it wants submitted and cancelled. So a transition and what caused it are one commit;
// and after a rollback the same arguments give the same answer.
//
// A workflow:
//
//	            Started          ┌─────────── a failed step was revived, or a retry ───────────┐
//	(nothing) ──────────► running ◄                                                            │
//	                        ├── all steps have ended, or one has terminated it ──► completed    │
//	                        ├── a step failed that may not, timeout, output ─────► failed ──────┘
//	                        └── Cancel ──────────────────────────────────────────► cancelled
//
// A step, with what users see of it where that is another word:
//
//	pending ──► ready (pending) ──► running ◄──► retrying
//	  │  needs, when   max_parallel    │
//	  ├──► skipped                     ├──► completed ◄──────────────┐
//	  │                                ├──► cancelled: by hand       │
//	  │                                └──► falling (running): its fallback step runs
//	  │                                └──► fallback (running): its fallback worker runs
//	  │                                                    └──► failed
//	  └──► stopped (cancelled) ◄── from all that have not ended, when the workflow ends
//
// failed and cancelled go back to where they were when their job is revived,
// and stopped to pending when the workflow goes on.
package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
)

// Kind is what a step does.
type Kind uint8

// The kinds of steps.
const (
	Job    Kind = iota // runs a job
	Child              // runs another workflow
	Signal             // waits for a signal
	Sleep              // waits for a time
)

// Bounds are what one event may begin, since it is one transaction. What is over them fails
// with [jobhost.FailLimit].
type Bounds struct {
	Tasks int // a job counts with its tasks
	Bytes int // of the payloads of fan-outs
}

// DefaultBounds are those of a machine without other bounds.
func DefaultBounds() Bounds { return Bounds{Tasks: 100_000, Bytes: 64 << 20} }

// Over reports whether what has begun is more than one event may begin.
func (b Bounds) Over(tasks, bytes int) bool { return tasks > b.Tasks || bytes > b.Bytes }

// TooMuch says what is wrong with a step that is over them.
func (b Bounds) TooMuch() string {
	return fmt.Sprintf("what begins at the same moment has more than %d tasks or %d bytes together: "+
		"let steps need each other, or set max_parallel", b.Tasks, b.Bytes)
}

// None is the index of no step.
const None = -1

// Node is what must be known of a step to decide what becomes of it.
type Node struct {
	Name string
	Kind Kind
	// Needs are the steps before, Next those of which this one is in their Needs.
	Needs, Next []int32
	// Fallback is the step that runs when this one has failed, FallbackOf the step
	// of which this one is the fallback; [None] = there is none.
	Fallback, FallbackOf int
	// FallbackWorker says that there is a worker to run a job of when this one has failed.
	FallbackWorker bool
	OnError        jobhost.OnError     // empty = FailWorkflow
	WhenSkipped    jobhost.WhenSkipped // empty = SkipToo
	// What there are expressions for. A fallback that doesn't say what it gets has the fan-out
	// of the step that it stands in for.
	HasWhen, HasInput, HasFanOut, HasTerminate bool

	Tasks  int           // of its job, without HasFanOut; 0 = 1
	Signal string        // its name, with Kind Signal
	Sleep  time.Duration // with Kind Sleep
	// Limit bounds the time from its start to its end; 0 = none. It is the step's
	// deadline, or the timeout of its wait for a signal if that comes first.
	Limit time.Duration
}

// listed reports whether the output is a list with an element for each task.
func (n *Node) listed() bool { return n.HasFanOut || n.Tasks > 1 }

// Graph is what must be known of a workflow.
type Graph struct {
	// Digest tells versions of a definition apart: a record goes on only with the
	// graph that it began with.
	Digest uint64
	Steps  []Node
	// HasOutput says that there is an expression for the output.
	HasOutput bool
	// Output is the step whose output is the workflow's; [None] = as the ends say.
	Output int
	// MaxParallel bounds the steps whose jobs and workflows run at one time; 0 = no bound.
	MaxParallel int
	Timeout     time.Duration // 0 = none
}

// check reports what would make the decisions on a graph go wrong. Whether a
// definition makes sense was looked at before.
func (g *Graph) check() error {
	n := len(g.Steps)
	if n == 0 || n > jobhost.MaxSteps {
		return fmt.Errorf("%d steps", n)
	}
	if g.Output < None || g.Output >= n {
		return fmt.Errorf("output of step %d of %d", g.Output, n)
	}
	for i := range g.Steps {
		if err := g.checkStep(i); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return g.checkFallbacks()
}

// checkFallbacks follows the fallbacks from the steps that are none themselves: what
// is not met then is in a circle.
func (g *Graph) checkFallbacks() error {
	met := 0
	for i := range g.Steps {
		if g.Steps[i].FallbackOf != None {
			continue
		}
		for j := i; j != None; j = g.Steps[j].Fallback {
			met++
		}
	}
	if met != len(g.Steps) {
		return errors.New("steps are fallbacks of each other")
	}
	return nil
}

func (g *Graph) checkStep(i int) error {
	s, n := &g.Steps[i], len(g.Steps)
	for _, list := range [][]int32{s.Needs, s.Next} {
		for _, j := range list {
			if j < 0 || int(j) >= n || int(j) == i {
				return fmt.Errorf("edge to %d", j)
			}
		}
	}
	for _, j := range []int{s.Fallback, s.FallbackOf} {
		if j < None || j >= n || j == i {
			return fmt.Errorf("fallback %d", j)
		}
	}
	switch {
	case s.Fallback != None && g.Steps[s.Fallback].FallbackOf != i, s.FallbackOf != None && g.Steps[s.FallbackOf].Fallback != i:
		return errors.New("a fallback and its step don't name each other")
	case s.Fallback != None && s.FallbackWorker:
		return errors.New("two fallbacks")
	case s.FallbackOf != None && len(s.Next) > 0:
		return errors.New("a fallback is needed by a step")
	case s.Kind > Sleep, s.Kind != Job && (s.HasFanOut || s.Tasks > 1):
		return errors.New("not a kind of step, or one without tasks")
	}
	return nil
}

// Machine decides on all workflows of one definition. It is safe for concurrent use,
// if its Evaluator is.
type Machine struct {
	graph   *Graph
	eval    Evaluator
	ends    []int            // steps that no other needs
	signals map[string][]int // steps that wait for a signal, by its name
	first   []int32          // steps that need none
	bounds  Bounds
}

// Within returns the machine with other bounds.
func (c *Machine) Within(b Bounds) *Machine {
	bounded := *c
	bounded.bounds = b
	return &bounded
}

// New returns the machine of a definition. Neither graph nor eval may change any more.
func New(graph *Graph, eval Evaluator) (*Machine, error) {
	if err := graph.check(); err != nil {
		return nil, fmt.Errorf("course of a workflow: %w", err)
	}
	c := &Machine{bounds: DefaultBounds(), graph: graph, eval: eval, signals: map[string][]int{}}
	for i := range graph.Steps {
		s := &graph.Steps[i]
		if len(s.Next) == 0 && s.FallbackOf == None {
			c.ends = append(c.ends, i)
		}
		if len(s.Needs) == 0 && s.FallbackOf == None {
			c.first = append(c.first, int32(i))
		}
		if s.Kind == Signal {
			c.signals[s.Signal] = append(c.signals[s.Signal], i)
		}
	}
	if len(c.first) == 0 {
		return nil, errors.New("course of a workflow: no step can be the first")
	}
	return c, nil
}
