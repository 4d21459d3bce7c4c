package machine

import (
	"fmt"
	"slices"

	"github.com/jobhost/jobhost"
)

// consider looks at a step of which something that it waits for has happened.
func (t *turn) consider(i int) {
	node := &t.c.graph.Steps[i]
	if t.rec.status[i] != pending || node.FallbackOf != None && !t.wanted(node.FallbackOf) {
		return
	}
	skips := 0
	// The last one first: it is mostly the last to end.
	for k := len(node.Needs) - 1; k >= 0; k-- {
		s := t.rec.status[node.Needs[k]]
		if !s.ended() {
			return
		}
		if s == skipped {
			skips++
		}
	}
	if skips > 0 {
		switch {
		case node.WhenSkipped == jobhost.RunWhatever:
		case node.WhenSkipped == jobhost.RunAnyway && skips < len(node.Needs):
		case skips == len(node.Needs):
			t.skip(i, "all that it needs was skipped")
			return
		default:
			t.skip(i, fmt.Sprintf("step %s was skipped", t.firstSkipped(node)))
			return
		}
	}
	if node.HasWhen {
		holds, err := t.c.eval.When(i, &View{t})
		if err != nil {
			t.fail(i, t.broken("when", err))
			return
		}
		if !holds {
			t.skip(i, "its condition is false")
			return
		}
	}
	if t.c.graph.MaxParallel > 0 && node.works() {
		t.put(i, ready, t.rec.detail(i))
		return
	}
	t.start(i)
}

// wanted reports whether a step's fallback step is to run.
func (t *turn) wanted(owner int) bool { return t.rec.status[owner] == falling }

func (t *turn) firstSkipped(node *Node) string {
	for _, j := range node.Needs {
		if t.rec.status[j] == skipped {
			return t.c.graph.Steps[j].Name
		}
	}
	return ""
}

// startReady starts a step, or its fallback worker, that waits for others to end,
// the first of the definition; false = none can start.
func (t *turn) startReady() bool {
	if t.c.graph.MaxParallel == 0 || t.busy >= t.c.graph.MaxParallel {
		return false
	}
	i := slices.Index(t.rec.status, ready)
	if i < 0 {
		return false
	}
	if t.rec.detail(i).via == worker {
		t.startFallback(i, nil)
	} else {
		t.start(i)
	}
	return true
}

// broken is the failure of an expression.
func (t *turn) broken(what string, err error) *jobhost.Failure {
	return t.fault(jobhost.FailExpression, jobhost.CategoryValidation, fmt.Sprintf("%s: %v", what, err))
}

// skip ends a step that doesn't run.
func (t *turn) skip(i int, reason string) {
	t.put(i, skipped, t.rec.detail(i))
	t.tell(Change{Step: i, Reason: reason})
	node := &t.c.graph.Steps[i]
	t.forgo(node)
	if owner := node.FallbackOf; owner != None && t.wanted(owner) {
		f, err := t.failure(owner)
		if err != nil {
			t.err = err
			return
		}
		t.give(owner, f)
		return
	}
	t.look = append(t.look, node.Next...)
}

// forgo skips the fallback step of one that doesn't need it any more.
func (t *turn) forgo(node *Node) {
	if f := node.Fallback; f != None && t.rec.status[f] == pending {
		t.skip(f, fmt.Sprintf("step %s didn't need it", node.Name))
	}
}
