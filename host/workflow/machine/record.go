package machine

import (
	"cmp"
	"slices"

	"github.com/jobhost/jobhost"
)

// Bounds of a record.
const (
	// MaxSignals bounds the signals that are kept until a step waits for them, and the
	// ids by which one that comes again is known.
	MaxSignals = 64
	version    = 1
)

// via is by what a step came to its end, or tries to.
type via uint8

const (
	own    via = iota // its own run
	worker            // its fallback worker
	step              // its fallback step
	signal            // a signal, which is kept in a slot
)

// detail is what there is to know of a step beside its status. Most have the
// detail that goes with their status, and take no room in the record.
type detail struct {
	step     int32
	runs     uint32 // how many it has had
	replaced uint32 // how many its fallback worker has had
	via      via
	// untimed: its job was revived, and has no deadline any more.
	untimed bool
	// empty: its fan-out was, so there is no job.
	empty bool
	slot  uint32 // with via signal
}

// anew keeps of a detail only what numbers runs.
func (d detail) anew(by via) detail {
	return detail{step: d.step, runs: d.runs, replaced: d.replaced, via: by}
}

// kept is a signal that no step waits for yet.
type kept struct {
	step int32 // the first that waits for signals of its name
	slot uint32
}

// record is the truth about a workflow.
type record struct {
	digest  uint64 // of the graph
	phase   phase
	started int64  // milliseconds since 1970
	begun   uint32 // how often the workflow has begun
	slots   uint32 // how many are in use
	status  []status
	details []detail // in the order of their steps; those that differ from what their status says
	signals []kept   // in the order in which they came
	seen    []uint64 // digests of the ids of signals, the oldest first

	open int // steps that have not ended
}

func newRecord(digest uint64, steps int, started int64) *record {
	return &record{digest: digest, started: started, begun: 1, status: make([]status, steps), open: steps}
}

func byStep(d detail, step int32) int { return cmp.Compare(d.step, step) }

// usual is the detail that goes with a status.
func usual(step int32, s status) detail { return detail{step: step, runs: s.begun()} }

// detail returns what there is to know of a step.
func (r *record) detail(i int) detail {
	if len(r.details) > 0 {
		if at, found := slices.BinarySearchFunc(r.details, int32(i), byStep); found {
			return r.details[at]
		}
	}
	return usual(int32(i), r.status[i])
}

// put sets where a step stands.
func (r *record) put(i int, s status, d detail) {
	if was := r.status[i]; was.ended() != s.ended() {
		if s.ended() {
			r.open--
		} else {
			r.open++
		}
	}
	r.status[i] = s
	isPlain := d == usual(d.step, s)
	if isPlain && len(r.details) == 0 {
		return
	}
	at, found := slices.BinarySearchFunc(r.details, d.step, byStep)
	switch {
	case found && isPlain:
		r.details = slices.Delete(r.details, at, at+1)
	case found:
		r.details[at] = d
	case !isPlain:
		r.details = slices.Insert(r.details, at, d)
	}
}

// Look is a record made readable.
type Look struct {
	c   *Machine
	rec *record
}

// Look reads a record.
func (c *Machine) Look(data []byte) (*Look, error) {
	rec, err := c.decode(data)
	if err != nil {
		return nil, err
	}
	return &Look{c, rec}, nil
}

// Status returns where the workflow stands.
func (l *Look) Status() jobhost.WorkflowStatus { return l.rec.phase.told() }

// Step returns where a step stands.
func (l *Look) Step(i int) jobhost.StepStatus { return l.rec.status[i].told() }

// Run returns the run that a step is in or was in last; Number 0 = none.
func (l *Look) Run(i int) Run { return l.rec.run(i) }

// Output returns where the output of a step is.
func (l *Look) Output(i int) Source { return l.c.source(l.rec, i) }

// Open returns how many steps have not ended.
func (l *Look) Open() int { return l.rec.open }

// run returns the run that a step is in, or was in last.
func (r *record) run(i int) Run {
	d := r.detail(i)
	if d.via == worker {
		return Run{Step: i, Number: d.replaced, Fallback: true}
	}
	return Run{Step: i, Number: d.runs}
}

// source returns where the output of a step is.
func (c *Machine) source(r *record, i int) Source {
	for r.status[i] == completed {
		d, node := r.detail(i), &c.graph.Steps[i]
		if d.empty {
			return Source{Kind: Empty}
		}
		switch d.via {
		case step:
			i = node.Fallback
			continue
		case signal:
			return Source{Kind: Kept, Slot: int(d.slot)}
		case own:
			switch node.Kind {
			case Child:
				return Source{Kind: Output, Run: r.run(i)}
			case Sleep, Signal:
				return Source{}
			}
		}
		kind := Result
		if node.listed() {
			kind = Results
		}
		return Source{Kind: kind, Run: r.run(i)}
	}
	return Source{}
}
