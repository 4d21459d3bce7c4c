package netproxy

import (
	"fmt"
	"slices"

	"github.com/jobhost/jobhost"
)

// State is where a pool stands.
type State int32

// The states.
const (
	Stopped  State = iota // takes nothing, has nothing
	Starting              // is about to run
	Running               // takes tasks
	Draining              // takes none; those that it has go on
	Stopping              // lets tasks end, or ends them
)

// String returns the state's name.
func (s State) String() string {
	return [...]string{"stopped", "starting", "running", "draining", "stopping"}[s]
}

// transitions are all that there are.
var transitions = [...][]State{
	Stopped:  {Starting},
	Starting: {Running},
	Running:  {Draining, Stopping},
	Draining: {Stopping},
	Stopping: {Stopped},
}

// becomeLocked changes the state, if there is such a transition.
func (p *core) becomeLocked(to State) error {
	if !slices.Contains(transitions[p.state], to) {
		return &jobhost.Error{Code: jobhost.CodeConflict, Message: fmt.Sprintf("HTTP processor is %v and can't become %v", p.state, to)}
	}
	p.state = to
	return nil
}

// State implements [Pool].
func (p *core) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}
