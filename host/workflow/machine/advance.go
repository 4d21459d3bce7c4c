package machine

import (
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
)

// turn is one Advance.
type turn struct {
	c      *Machine
	id     string // of the workflow
	rec    *record
	event  *Event
	reader Reader
	out    Outcome
	look   []int32 // pending steps that may be able to go on, from next
	next   int
	busy   int    // steps that count for max_parallel, if that is set
	tasks  int    // of the jobs that were asked for
	bytes  int    // of their items
	at     Source // of data that came with the event
	data   []byte
	memo   map[Source]any // of the evaluator
	err    error          // of the reader
}

// Advance tells what becomes of a workflow by an event: record is what was
// stored last, empty with Started. It depends on nothing but its arguments and
// what the reader returns. Events that come late, twice or for nothing change nothing. Errors:
// [ErrRecord], or that of the reader; the transaction must not go on then.
func (c *Machine) Advance(id string, record []byte, event *Event, reader Reader) (Outcome, error) {
	t := turn{c: c, id: id, event: event, reader: reader}
	if err := t.open(record); err != nil {
		return Outcome{}, fmt.Errorf("advance workflow %s: %w", id, err)
	}
	if !t.take() {
		return Outcome{Refused: t.out.Refused}, nil
	}
	t.run()
	if t.err != nil {
		return Outcome{}, fmt.Errorf("advance workflow %s: %w", id, t.err)
	}
	t.out.Record = t.rec.encode()
	return t.out, nil
}

func (t *turn) open(data []byte) (err error) {
	if len(data) > 0 {
		t.rec, err = t.c.decode(data)
		if err == nil && t.c.graph.MaxParallel > 0 && t.rec.phase == underway {
			for i, s := range t.rec.status {
				t.busy += t.c.busy(i, s)
			}
		}
		return err
	}
	if t.event.What != Started {
		return malformed("there is none, and the event is no start")
	}
	if len(t.id) > MaxWorkflowID {
		return fmt.Errorf("its id of %d bytes is longer than %d", len(t.id), MaxWorkflowID)
	}
	t.rec = newRecord(t.c.graph.Digest, len(t.c.graph.Steps), max(t.event.At.UnixMilli(), 0))
	t.begin()
	t.look = append(t.look, t.c.first...)
	return nil
}

// take lets the event happen. It returns false when that changes nothing.
func (t *turn) take() bool {
	e := t.event
	switch e.What {
	case Started:
		return len(t.look) > 0
	case JobRevived, ChildResumed:
		return t.revive(e.Run)
	case Retry:
		return t.retry(e.Step)
	case Signalled:
		return t.signal()
	}
	if t.rec.phase != underway {
		return false
	}
	switch e.What {
	case TimerDue:
		return t.due(e.Timer)
	case Cancelled:
		t.end(called, &End{Step: None, Reason: e.Reason})
		return true
	}
	i := e.Run.Step
	if i < 0 || i >= len(t.rec.status) || !t.rec.status[i].active() || t.rec.run(i) != e.Run {
		return false
	}
	kind := t.c.graph.Steps[i].Kind
	switch {
	case e.What == ChildEnded:
		return kind == Child && !e.Run.Fallback && t.childEnded(i)
	case kind != Job && !e.Run.Fallback:
		return false
	}
	return t.jobEnded(i)
}

func (t *turn) jobEnded(i int) bool {
	switch t.event.What {
	case JobSucceeded:
		t.bring(i, t.event.Output)
		t.complete(i)
	case JobDead:
		t.fail(i, t.given("the job is dead and didn't say why"))
	case JobCancelled:
		t.cancel(i, "its job was cancelled")
	case JobRetrying:
		if t.rec.status[i] != running {
			return false
		}
		t.put(i, retrying, t.rec.detail(i))
		t.tell(Change{Step: i, Failure: t.event.Failure})
	default:
		return false
	}
	return true
}

func (t *turn) childEnded(i int) bool {
	switch t.event.Status {
	case jobhost.WorkflowCompleted:
		t.bring(i, t.event.Output)
		t.complete(i)
	case jobhost.WorkflowFailed:
		t.fail(i, t.given("the workflow failed and didn't say why"))
	case jobhost.WorkflowCancelled:
		t.cancel(i, "its workflow was cancelled")
	default:
		return false
	}
	return true
}

// bring makes data that came with the event known as the output of a step.
func (t *turn) bring(i int, data []byte) {
	node := &t.c.graph.Steps[i]
	if data == nil || node.listed() {
		return
	}
	t.at, t.data = Source{Kind: Result, Run: t.event.Run}, data
	if t.event.What == ChildEnded {
		t.at.Kind = Output
	}
}

// given returns the event's failure, or one that says so.
func (t *turn) given(otherwise string) *jobhost.Failure {
	if t.event.Failure != nil {
		return t.event.Failure
	}
	return t.fault(jobhost.FailInternal, jobhost.CategoryUnknown, otherwise)
}

// fault is a failure that no attempt has had.
func (t *turn) fault(code string, category jobhost.Category, message string) *jobhost.Failure {
	at := t.event.At.UTC().Truncate(time.Millisecond)
	return &jobhost.Failure{
		Code: code, Category: category, Severity: jobhost.SeverityError, Message: message, StartedAt: at, EndedAt: at,
	}
}

// due is the end of a sleep, or of a wait with a timeout.
func (t *turn) due(timer Timer) bool {
	i := timer.Step
	if i == None {
		if timer.Purpose != Limit || timer.Number != t.rec.begun || t.c.graph.Timeout == 0 {
			return false
		}
		f := t.fault(jobhost.FailTimeout, jobhost.CategoryTimeout, fmt.Sprintf("the workflow ran longer than %v", t.c.graph.Timeout))
		t.end(broken, &End{Step: None, Failure: f})
		return true
	}
	if i < 0 || i >= len(t.rec.status) || !t.rec.status[i].active() || t.rec.run(i) != timer.Run {
		return false
	}
	node := &t.c.graph.Steps[i]
	switch {
	case timer.Purpose == Wake && node.Kind == Sleep && !timer.Fallback:
		t.complete(i)
	case timer.Purpose == Limit && node.Limit > 0 && !t.rec.detail(i).untimed:
		t.abandon(i)
		t.fail(i, t.late(node))
	default:
		return false
	}
	return true
}

func (t *turn) late(node *Node) *jobhost.Failure {
	message := fmt.Sprintf("the step took longer than %v", node.Limit)
	if node.Kind == Signal {
		message = fmt.Sprintf("no signal %s has come within %v", node.Signal, node.Limit)
	}
	return t.fault(jobhost.FailTimeout, jobhost.CategoryTimeout, message)
}

// run goes on until nothing more can be done about the event.
func (t *turn) run() {
	for t.rec.phase == underway && t.err == nil {
		if t.next < len(t.look) {
			t.next++
			t.consider(int(t.look[t.next-1]))
			continue
		}
		if t.startReady() {
			continue
		}
		if t.rec.open == 0 {
			t.finish()
		}
		return
	}
}

// put sets where a step stands.
func (t *turn) put(i int, s status, d detail) {
	if t.c.graph.MaxParallel > 0 {
		t.busy += t.c.busy(i, s) - t.c.busy(i, t.rec.status[i])
	}
	t.rec.put(i, s, d)
}

// busy returns 1 if a step in a status counts for max_parallel.
func (c *Machine) busy(i int, s status) int {
	if s == fallback || s.active() && c.graph.Steps[i].works() {
		return 1
	}
	return 0
}

// works reports whether it runs a worker, rather than waits.
func (n *Node) works() bool { return n.Kind == Job || n.Kind == Child }

// tell notes where a step stands now.
func (t *turn) tell(c Change) {
	c.Status = t.rec.status[c.Step].told()
	c.Run = t.rec.run(c.Step)
	t.out.Changes = append(t.out.Changes, c)
}

func (t *turn) source(i int) Source { return t.c.source(t.rec, i) }
