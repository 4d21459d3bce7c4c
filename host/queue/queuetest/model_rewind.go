package queuetest

import (
	"github.com/jobhost/jobhost/host/queue/record"
)

// rewind takes back times of a clock that was ahead.
func (m *model) rewind(op *record.Rewind) record.OpResult {
	ahead := func(at record.Millis) bool { return at > op.To && at <= op.Until }
	back := func(at *record.Millis) {
		if *at > op.To {
			*at = max(op.To, *at-(op.From-op.To))
		}
	}
	for _, job := range m.jobs {
		for i := range job.tasks {
			t := &job.tasks[i]
			switch written := ahead(max(job.spec.CreatedAt, t.StartedAt)); {
			case t.Status != record.Open && ahead(t.EndedAt):
				back(&t.expires)
			case t.Status != record.Open:
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
	return record.OpResult{}
}
