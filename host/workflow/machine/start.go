package machine

import (
	"fmt"

	"github.com/jobhost/jobhost"
)

// start begins a run of a step whose time has come. Until there is something that
// can end, it is ready.
func (t *turn) start(i int) {
	node := &t.c.graph.Steps[i]
	d := t.rec.detail(i)
	d = d.anew(own)
	d.runs++
	t.put(i, ready, d)
	run := t.rec.run(i)
	change := Change{Step: i}
	switch node.Kind {
	case Signal:
		if slot, found := t.kept(node.Signal); found {
			d.via, d.slot = signal, slot
			t.put(i, ready, d)
			t.complete(i)
			return
		}
		change.Reason = fmt.Sprintf("waits for signal %s", node.Signal)
	case Sleep:
		at := t.event.At.Add(node.Sleep)
		t.set(Timer{run, Wake}, at)
		change.Reason = fmt.Sprintf("sleeps until %s", at.UTC().Format(timeForm))
	case Child:
		payload, err := t.input(i)
		if err != nil {
			t.fail(i, t.broken("input", err))
			return
		}
		t.out.Begin = append(t.out.Begin, Begin{Run: run, ID: t.c.ChildID(t.id, run), Payload: payload})
	case Job:
		tasks, begun := t.submit(i)
		if !begun {
			return
		}
		change.Tasks = tasks
	}
	t.put(i, running, d)
	t.limit(run)
	t.tell(change)
}

const timeForm = "2006-01-02 15:04:05Z"

// submit asks for the job of a step. It returns false when there is none, and
// the step has ended or goes on otherwise.
func (t *turn) submit(i int) (tasks int, begun bool) {
	node := &t.c.graph.Steps[i]
	s := Submit{Run: t.rec.run(i), Tasks: max(node.Tasks, 1)}
	var err error
	switch {
	case t.c.bounds.Over(t.tasks+s.Tasks, t.bytes):
		t.fail(i, t.tooMuch())
		return 0, false
	case node.HasFanOut:
		if s.Items, err = t.c.eval.FanOut(i, &View{t}); err == nil && len(s.Items) > jobhost.MaxFanOut {
			err = fmt.Errorf("a list of %d elements is longer than %d", len(s.Items), jobhost.MaxFanOut)
		}
		if err != nil {
			t.fail(i, t.broken("fan_out", err))
			return 0, false
		}
		if s.Tasks = len(s.Items); s.Tasks == 0 {
			d := t.rec.detail(i)
			d.empty = true
			t.put(i, ready, d)
			t.complete(i)
			return 0, false
		}
	default:
		if s.Payload, err = t.input(i); err != nil {
			t.fail(i, t.broken("input", err))
			return 0, false
		}
	}
	for _, item := range s.Items {
		t.bytes += len(item)
	}
	if t.tasks += s.Tasks; t.c.bounds.Over(t.tasks, t.bytes) {
		t.fail(i, t.tooMuch())
		return 0, false
	}
	s.ID = t.c.ID(t.id, s.Run)
	t.out.Submit = append(t.out.Submit, s)
	return s.Tasks, true
}

// tooMuch is the failure of a step that can't begin together with what has begun already.
func (t *turn) tooMuch() *jobhost.Failure {
	return t.fault(jobhost.FailLimit, jobhost.CategoryResource, t.c.bounds.TooMuch())
}

// input returns the payload of a step. A fallback that doesn't say what it gets, gets
// what the step has got that it stands in for.
func (t *turn) input(i int) (Payload, error) {
	node := &t.c.graph.Steps[i]
	for !node.HasInput && !node.HasFanOut && len(node.Needs) == 0 && node.FallbackOf != None {
		i = node.FallbackOf
		node = &t.c.graph.Steps[i]
	}
	switch {
	case node.HasInput:
		return t.c.eval.Input(i, &View{t})
	case len(node.Needs) == 0:
		return whole(Source{Kind: Input}), nil
	case len(node.Needs) == 1:
		return whole(t.source(int(node.Needs[0]))), nil
	}
	return t.object(node.Needs), nil
}

// object is a payload of the outputs of steps by their names.
func (t *turn) object(steps []int32) Payload {
	parts := make([]Part, len(steps))
	for k, i := range steps {
		parts[k] = Part{t.c.graph.Steps[i].Name, t.source(int(i))}
	}
	return Payload{From: parts}
}

// limit sets the timer that ends a run that takes too long.
func (t *turn) limit(run Run) {
	if limit := t.c.graph.Steps[run.Step].Limit; limit > 0 {
		t.set(Timer{run, Limit}, t.event.At.Add(limit))
	}
}

// startFallback runs the job of a step's fallback worker. It has the step's input, and
// the step's time for itself.
func (t *turn) startFallback(i int, failure *jobhost.Failure) {
	d := t.rec.detail(i)
	d = d.anew(worker)
	d.replaced++
	t.put(i, ready, d)
	if tasks, begun := t.submit(i); begun {
		t.put(i, fallback, d)
		t.limit(t.rec.run(i))
		t.tell(Change{Step: i, Fallback: true, Tasks: tasks, Failure: failure})
	}
}
