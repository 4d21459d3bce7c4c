package queuetest

import (
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/state/payload"
)

// addRef makes a reference live; "" = there is none.
func (m *model) addRef(ref string) {
	if ref != "" {
		m.objects[payload.NameOf(ref)] = ref
	}
}

// refTaken reports whether a job or task has an object of that name, or had.
func (m *model) refTaken(ref string) bool {
	name := payload.NameOf(ref)
	return ref != "" && (m.objects[name] != "" || m.gone[name] != "")
}

// anyGone reports whether there are references or states that are gone.
func (m *model) anyGone() bool { return len(m.gone) > 0 || len(m.stateless) > 0 }

// remove removes a job; its references and its states are gone.
func (m *model) remove(job *modelJob) {
	delete(m.jobs, job.spec.ID)
	if m.noted[job.spec.ID] {
		delete(m.noted, job.spec.ID)
		m.stateless[job.spec.ID] = true
	}
	refs := []string{job.spec.Ref}
	for i := range job.tasks {
		refs = append(refs, job.tasks[i].ResultRef)
	}
	for _, ref := range refs {
		if name := payload.NameOf(ref); ref != "" {
			delete(m.objects, name)
			m.gone[name] = ref
		}
	}
}

func (m *model) forget(op *record.Forget) {
	for _, ref := range op.Refs {
		if name := payload.NameOf(ref); m.gone[name] == ref {
			delete(m.gone, name)
		}
	}
}
