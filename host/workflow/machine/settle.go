package machine

import (
	"github.com/jobhost/jobhost"
)

// complete ends a step with success: it, or its fallback, has done what it should.
func (t *turn) complete(i int) {
	node := &t.c.graph.Steps[i]
	d := t.rec.detail(i)
	t.leave(i)
	t.put(i, completed, d)
	if node.HasTerminate {
		ends, err := t.c.eval.Terminate(i, &View{t})
		if err != nil {
			t.put(i, ready, d)
			t.fail(i, t.broken("terminate", err))
			return
		}
		if ends {
			t.completed(i, "it has ended the workflow")
			t.end(done, &End{Step: i, Output: whole(t.source(i))})
			return
		}
	}
	t.completed(i, "")
	t.forgo(node)
	if owner := node.FallbackOf; owner != None && t.wanted(owner) {
		t.complete(owner)
		return
	}
	t.look = append(t.look, node.Next...)
}

func (t *turn) completed(i int, reason string) {
	source := t.source(i)
	v := t.rec.detail(i).via
	t.tell(Change{Step: i, Reason: reason, Fallback: v == step || v == worker, Output: &source})
}

// fail is the failure of a step that can still be mended, by its fallback.
func (t *turn) fail(i int, failure *jobhost.Failure) {
	node := &t.c.graph.Steps[i]
	t.leave(i)
	d := t.rec.detail(i)
	first := d.via != worker && d.via != step // what has failed is not the fallback
	switch {
	case first && node.Fallback != None:
		d = d.anew(step)
		t.put(i, falling, d)
		t.tell(Change{Step: i, Fallback: true, Failure: failure})
		t.look = append(t.look, int32(node.Fallback))
	case first && node.FallbackWorker:
		if t.c.graph.MaxParallel == 0 {
			t.startFallback(i, failure)
			return
		}
		d = d.anew(worker)
		t.put(i, ready, d)
		t.tell(Change{Step: i, Reason: "its fallback waits for its turn", Fallback: true, Failure: failure})
	default:
		t.give(i, failure)
	}
}

// give gives a step up.
func (t *turn) give(i int, failure *jobhost.Failure) {
	d := t.rec.detail(i)
	t.put(i, failed, d)
	t.tell(Change{Step: i, Fallback: d.via == step || d.via == worker, Failure: failure})
	t.missed(i, failure)
}

// cancel ends a step whose run was cancelled from outside. Its fallback doesn't run:
// nothing has failed.
func (t *turn) cancel(i int, reason string) {
	t.leave(i)
	t.put(i, cancelled, t.rec.detail(i))
	failure := t.fault(jobhost.FailCancelled, jobhost.CategoryBusiness, reason)
	t.tell(Change{Step: i, Reason: reason, Failure: failure})
	t.forgo(&t.c.graph.Steps[i])
	t.missed(i, failure)
}

// missed goes on after a step that has no output.
func (t *turn) missed(i int, failure *jobhost.Failure) {
	node := &t.c.graph.Steps[i]
	switch owner := node.FallbackOf; {
	case owner != None && t.wanted(owner):
		t.give(owner, failure)
	case node.OnError == jobhost.ContinueWorkflow:
		t.look = append(t.look, node.Next...)
	default:
		t.end(broken, &End{Step: i, Failure: failure})
	}
}

// leave takes back the timers of a run that ends, but for the one that is due.
func (t *turn) leave(i int) {
	s := t.rec.status[i]
	if !s.active() {
		return
	}
	node, run := &t.c.graph.Steps[i], t.rec.run(i)
	if node.Limit > 0 && !t.rec.detail(i).untimed {
		t.unset(Timer{run, Limit})
	}
	if node.Kind == Sleep && !run.Fallback {
		t.unset(Timer{run, Wake})
	}
}

// abandon cancels what a run has others do.
func (t *turn) abandon(i int) {
	if !t.rec.status[i].active() {
		return
	}
	run := t.rec.run(i)
	switch kind := t.c.graph.Steps[i].Kind; {
	case kind == Job || run.Fallback:
		t.out.Cancel = append(t.out.Cancel, run)
	case kind == Child:
		t.out.Stop = append(t.out.Stop, run)
	}
}
