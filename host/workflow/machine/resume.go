package machine

import (
	"fmt"

	"github.com/jobhost/jobhost"
)

// revive goes on with a step whose job or workflow had ended in vain, and is open
// again. It has no limit of time any more. A step of which others have made
// something already stays as it is, whatever comes of its job.
func (t *turn) revive(run Run) bool {
	i := run.Step
	if i < 0 || i >= len(t.rec.status) {
		return false
	}
	node, d := &t.c.graph.Steps[i], t.rec.detail(i)
	kind := Job
	if t.event.What == ChildResumed {
		kind = Child
	}
	number := d.runs
	if run.Fallback {
		number = d.replaced
		if d.via != worker || kind == Child {
			return false
		}
	}
	if run.Number == 0 || run.Number != number || node.Kind != kind && !run.Fallback || t.stays(i) != "" {
		return false
	}
	t.reopen(i)
	d = d.anew(own)
	d.untimed = node.Limit > 0
	if run.Fallback {
		d.via = worker
		t.put(i, fallback, d)
	} else {
		t.put(i, running, d)
	}
	t.tell(Change{Step: i, Reason: "its job was revived", Fallback: run.Fallback})
	return true
}

// retry lets a step run anew, or what made the workflow fail.
func (t *turn) retry(i int) bool {
	if i == None {
		if t.rec.phase != broken {
			return t.refuse(jobhost.CodeConflict, "", "the workflow has not failed", "")
		}
		if i = t.culprit(); i == None {
			t.resume()
			return true
		}
	}
	if i < 0 || i >= len(t.rec.status) {
		return t.refuse(jobhost.CodeNotFound, "step", "there is no such step", "")
	}
	if why := t.stays(i); why != "" {
		return t.refuse(jobhost.CodeConflict, "step", why, "")
	}
	t.reopen(i)
	t.reset(i)
	t.look = append(t.look, int32(i))
	return true
}

// stays returns why a step can't go on; empty = it can.
func (t *turn) stays(i int) string {
	name := t.c.graph.Steps[i].Name
	if s := t.rec.status[i]; s != failed && s != cancelled {
		return fmt.Sprintf("step %s has not failed", name)
	}
	top := i
	for owner := t.c.graph.Steps[i].FallbackOf; owner != None; owner = t.c.graph.Steps[owner].FallbackOf {
		if t.rec.status[owner] != failed {
			return fmt.Sprintf("step %s has not failed", t.c.graph.Steps[owner].Name)
		}
		top = owner
	}
	switch t.rec.phase {
	case underway:
	case broken:
		if culprit := t.culprit(); culprit != None && culprit != top {
			return fmt.Sprintf("the workflow has failed by another step, %s", t.c.graph.Steps[culprit].Name)
		}
	default:
		return "the workflow has ended, and did not fail"
	}
	for _, j := range t.c.graph.Steps[top].Next {
		began := t.rec.detail(int(j)).via != own
		if s := t.rec.status[j]; s != pending && (s != ready || began) && s != stopped {
			return fmt.Sprintf("step %s went on without it", t.c.graph.Steps[j].Name)
		}
	}
	return ""
}

// culprit is the step that made the workflow fail. There is one at most: its failure
// has ended all others.
func (t *turn) culprit() int {
	for i, s := range t.rec.status {
		node := &t.c.graph.Steps[i]
		if (s == failed || s == cancelled) && node.FallbackOf == None && node.OnError != jobhost.ContinueWorkflow {
			return i
		}
	}
	return None
}

// reopen makes the steps around one that has failed as they were before it did.
func (t *turn) reopen(i int) {
	node := &t.c.graph.Steps[i]
	if f := node.Fallback; f != None {
		t.resetAll(f)
	}
	top := i
	for owner := node.FallbackOf; owner != None; owner = t.c.graph.Steps[owner].FallbackOf {
		d := t.rec.detail(owner)
		t.put(owner, falling, d)
		t.tell(Change{Step: owner, Fallback: true})
		top = owner
	}
	for _, j := range t.c.graph.Steps[top].Next {
		if t.rec.status[j] == ready {
			t.put(int(j), pending, t.rec.detail(int(j)))
		}
	}
	t.resume()
}

// resetAll makes a fallback step wait again, and those after it.
func (t *turn) resetAll(i int) {
	for ; i != None; i = t.c.graph.Steps[i].Fallback {
		t.reset(i)
	}
}

// reset makes a step wait again.
func (t *turn) reset(i int) {
	if t.rec.status[i] == pending {
		return
	}
	d := t.rec.detail(i)
	t.put(i, pending, d.anew(own))
	t.tell(Change{Step: i})
}

// resume lets a workflow run again that has failed.
func (t *turn) resume() {
	if t.rec.phase != broken {
		return
	}
	t.rec.phase = underway
	t.rec.begun++
	t.out.Resumed = true
	t.begin()
	for i, s := range t.rec.status {
		if s != stopped {
			continue
		}
		d := t.rec.detail(i)
		t.put(i, pending, d)
		t.look = append(t.look, int32(i))
		if d.runs > 0 {
			t.tell(Change{Step: i})
		}
	}
}
