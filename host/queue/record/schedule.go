package record

// ScheduleState is what a store keeps of a schedule. What it means, and what
// follows from it, is decided in package schedule; a store only keeps it.
type ScheduleState struct {
	Name string
	// Version rises by one with every change; 0 = it is not stored.
	Version int64
	// Timing identifies the ticks that Last is one of.
	Timing string
	// Last is the time up to which all ticks are decided.
	Last Millis
	// Fired is the latest tick that made a job, LastJob the id of the latest
	// job; 0 and empty = none.
	Fired   Millis
	LastJob string
	// PausedAt is when the schedule was paused, GoneAt when the host was
	// configured without it; 0 = it is not so.
	PausedAt, GoneAt Millis
	// Open are ids of jobs that had not ended when last looked at, if the schedule
	// needs that, and Waiting the ticks that wait for their end, oldest first.
	Open    []string
	Waiting []Millis
}

// Fire changes the state of a schedule and submits the jobs of its ticks, all
// or nothing: so no tick makes two jobs, whenever the process ends. It is
// refused with conflict unless State.Version is that of the stored state; the
// state is then stored with the next version. A job whose id is taken is not
// submitted, whatever that job is: see OpResult.Fired.
type Fire struct {
	State ScheduleState
	// Forget removes the state instead.
	Forget bool
	Jobs   []*JobSpec
}
