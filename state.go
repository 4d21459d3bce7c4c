package jobhost

import "fmt"

// State is the state of a task; a job's state is derived from its tasks' by
// [JobState]. docs/states.md draws the machine.
type State uint8

// The states of a task.
const (
	Scheduled State = iota + 1 // waits for its time; has not run yet
	Ready                      // may run as soon as a slot is free
	Running                    // an attempt runs
	Retrying                   // an attempt failed; waits for its next time
	Held                       // may not run now; Why gives the reason
	Succeeded                  // ended: its result is kept
	Dead                       // ended: out of attempts, or failed permanently
	Cancelled                  // ended: cancelled by request
)

var stateNames = [...]string{
	Scheduled: "scheduled", Ready: "ready", Running: "running", Retrying: "retrying",
	Held: "held", Succeeded: "succeeded", Dead: "dead", Cancelled: "cancelled",
}

// States lists all states in the order of a task's life.
func States() []State {
	return []State{Scheduled, Ready, Running, Retrying, Held, Succeeded, Dead, Cancelled}
}

// Ended reports whether the state is terminal.
func (s State) Ended() bool { return s >= Succeeded }

// String returns the name in lower case.
func (s State) String() string {
	if s >= Scheduled && int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState returns the state of that name.
func ParseState(name string) (State, error) {
	for _, s := range States() {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, &Error{
		Code:    CodeInvalid,
		Field:   "state",
		Message: fmt.Sprintf("%s is not a state", clip(name)),
		Hint:    "use scheduled, ready, running, retrying, held, succeeded, dead or cancelled",
	}
}

// MarshalText implements [encoding.TextMarshaler].
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *State) UnmarshalText(text []byte) error {
	parsed, err := ParseState(string(text))
	if err == nil {
		*s = parsed
	}
	return err
}

// transitions is the task's state machine: which states may follow each. Retrying and Scheduled
// become Ready by the clock; every other transition is the result of an action. Dead and
// Cancelled go back only when retried manually.
var transitions = map[State][]State{
	Scheduled: {Ready, Held, Dead, Cancelled},
	Ready:     {Running, Held, Dead, Cancelled},
	Held:      {Ready, Scheduled, Retrying, Dead, Cancelled},
	Running:   {Succeeded, Retrying, Scheduled, Ready, Dead, Cancelled},
	Retrying:  {Ready, Held, Dead, Cancelled},
	Succeeded: {},
	Dead:      {Ready},
	Cancelled: {Ready},
}

// CanBecome reports whether a task may go from one state to the other in one
// step. Running becomes Scheduled by a snooze, and Ready when the host takes an
// attempt back without counting it.
func (s State) CanBecome(next State) bool {
	for _, t := range transitions[s] {
		if t == next {
			return true
		}
	}
	return false
}

// Counts are numbers of tasks by state, indexed by [State].
type Counts [len(stateNames)]int64

// Total returns the number of all tasks.
func (c *Counts) Total() int64 {
	var n int64
	for _, v := range c {
		n += v
	}
	return n
}

// JobState derives the state of a job from those of its tasks. While a task is
// open, the job is running if any task runs, else ready, held, retrying or
// scheduled, in this order. When all have ended, it is dead if any is dead,
// else cancelled if any was cancelled, else succeeded.
func JobState(tasks *Counts) State {
	for _, s := range []State{Running, Ready, Held, Retrying, Scheduled, Dead, Cancelled} {
		if tasks[s] > 0 {
			return s
		}
	}
	return Succeeded
}
