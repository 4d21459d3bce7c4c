package order

import "github.com/jobhost/jobhost/host/queue/record"

// Entry is a task that waits, as small as it can be: a million of them are
// held in memory. Everything else is read from the store when it is about to run.
type Entry struct {
	Key     record.Key
	ReadyAt record.Millis
	Token   int32
	Index   int16 // of the task in its job; Key - Index is the job
	Level   int8
	Tried   bool // an attempt was made that counts
}

// Job is the key of the task's job.
func (e Entry) Job() record.Key { return e.Key - record.Key(e.Index) }

// older orders the entries of one level: by the time since which they are
// ready, then by the order of their submission.
func older(a, b Entry) bool {
	if a.ReadyAt != b.ReadyAt {
		return a.ReadyAt < b.ReadyAt
	}
	return a.Key < b.Key
}

// Waiting is a task that waits, with its traits.
type Waiting struct {
	Entry
	Traits
}

// Traits are what only few tasks have.
type Traits struct {
	Group    record.Group
	Deadline record.Millis // 0 = none
}
