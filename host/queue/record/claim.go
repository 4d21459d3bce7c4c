package record

// Key is the number that the store gives a task. Keys rise in the order of
// submission; the tasks of a job have consecutive keys, and the key of its
// task 0 is the key of the job.
type Key int64

// Place is where a task stands in the order of claims.
type Place struct {
	ReadyAt Millis
	Key     Key
}

// Claimed is a leased task.
type Claimed struct {
	Place
	Index   int // of the task in its job
	Attempt int // attempts that were made and count
	Level   int // of priority, 0..4
	Group   Group
	Token   int64
	// Deadline is when the task is given up if it waits; 0 = never.
	Deadline Millis
}

// Body is what is needed to run a task: its job's part and its own.
type Body struct {
	Key     Key
	Token   int64
	Attempt int // attempts that were made and count
	// Suspect: an attempt of the task was under way when a host died.
	Suspect bool
	Index   int
	// Deadline is as with [Claimed].
	Deadline Millis
	// Payload is the task's own, of a job with Items, and never nil there; nil = that of the job.
	Payload []byte
	// Damage says what of the payload, or of the job, is not what was written: then it is
	// not here, and the task must not run. nil = all is.
	Damage error
	Job    *JobSpec
}

// Input returns what the task is run with. It is not all of it, but nothing, if the
// job has a Ref.
func (b *Body) Input() []byte {
	if b.Payload != nil {
		return b.Payload
	}
	return b.Job.Payload
}
