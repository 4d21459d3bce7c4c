package queuetest

import "github.com/jobhost/jobhost/host/queue"

// rewind takes back times of a clock that was ahead.
func (m *model) rewind(op *queue.Rewind) queue.OpResult {
	ahead := func(at queue.Millis) bool { return at > op.To && at <= op.Until }
	back := func(at *queue.Millis) {
		if *at > op.To {
			*at = max(op.To, *at-(op.From-op.To))
		}
	}
	for _, job := range m.jobs {
		for i := range job.tasks {
			t := &job.tasks[i]
			switch written := ahead(max(job.spec.CreatedAt, t.StartedAt)); {
			case t.Status != queue.Open && ahead(t.EndedAt):
				back(&t.expires)
			case t.Status != queue.Open:
			case written:
				back(&t.deadline)
				back(&t.ReadyAt)
			case t.ReadyAt <= op.From:
				back(&t.ReadyAt)
			}
		}
		if ahead(job.spec.CreatedAt) {
			back(&job.spec.UniqueUntil)
		}
	}
	for _, keys := range m.keys {
		for name, e := range keys.entries {
			if ahead(e.ChangedAt) {
				back(&e.Expires)
				keys.entries[name] = e
			}
		}
	}
	return queue.OpResult{}
}
