package queue

import "bytes"

// Input returns what the task is run with. It is not all of it, but nothing, if the
// job has a Ref.
func (b *Body) Input() []byte {
	if b.Payload != nil {
		return b.Payload
	}
	return b.Job.Payload
}

// ItemBytes returns the sum of the sizes of the job's items.
func (j *JobSpec) ItemBytes() (n int64) {
	for _, item := range j.Items {
		n += int64(len(item))
	}
	return n
}

// item returns the payload of a task of its own; nil = it has that of the job.
func (j *JobSpec) item(i int) []byte {
	switch {
	case j.Items == nil:
		return nil
	case j.Items[i] == nil:
		return []byte{}
	}
	return j.Items[i]
}

// withoutItems returns the job as it comes with bodies.
func (j *JobSpec) withoutItems() *JobSpec {
	if j.Items == nil {
		return j
	}
	bare := *j
	bare.Items = nil
	return &bare
}

// keepNewLocked keeps the body of a task that was just submitted, if there is room.
// job is the task's without items.
func (l *lane) keepNewLocked(e entry, job *JobSpec, item []byte) {
	b := &Body{Key: e.key, Index: int(e.index), Deadline: job.Deadline, Payload: item, Job: job}
	if l.bodies.keep(b) {
		// Items may be parts of one text, all of which a single one would keep.
		b.Payload = bytes.Clone(item)
	}
}
