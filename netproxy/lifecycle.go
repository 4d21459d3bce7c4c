package netproxy

import (
	"fmt"
	"slices"

	"github.com/jobhost/jobhost"
)

// State is the state of a pool.
type State int32

// The states.
const (
	Stopped  State = iota // takes no tasks, has none
	Starting              // is about to run
	Running               // takes tasks
	Draining              // takes no tasks; those that it has continue
	Stopping              // waits for tasks to end, or ends them
)

// String returns the state's name.
func (s State) String() string {
	return [...]string{"stopped", "starting", "running", "draining", "stopping"}[s]
}

// transitions lists all allowed transitions.
var transitions = [...][]State{
	Stopped:  {Starting},
	Starting: {Running},
	Running:  {Draining, Stopping},
	Draining: {Stopping},
	Stopping: {Stopped},
}

// becomeLocked changes the state, if the transition is allowed.
func (p *Processor) becomeLocked(to State) error {
	if !slices.Contains(transitions[p.state], to) {
		return &jobhost.Error{Code: jobhost.CodeConflict, Message: fmt.Sprintf("HTTP processor is %v and can't become %v", p.state, to)}
	}
	p.state = to
	return nil
}

// State implements [Pool].
func (p *Processor) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}
