package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/jobhost/jobhost"
)

// State is where a host stands in its life.
type State uint8

// The states of a host.
const (
	Stopped State = iota
	Starting
	Running
	Draining // admits nothing; running tasks may finish
	Stopping // what still runs is stopped
)

var stateNames = [...]string{"stopped", "starting", "running", "draining", "stopping"}

// String returns the name in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// transitions is the one table of what may follow what. A host runs once:
// nothing follows the Stopped at the end. A start that fails is drained too.
var transitions = map[State][]State{
	Stopped:  {Starting},
	Starting: {Running, Draining},
	Running:  {Draining},
	Draining: {Stopping},
	Stopping: {Stopped},
}

// become goes to the next state, if the table has it.
func (h *Host) become(next State) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(transitions[h.state], next) || next == Starting && h.ran {
		return false
	}
	if h.state == Starting {
		close(h.started)
	}
	if next == Draining {
		h.leave(errDrains)
	}
	h.state, h.ran = next, true
	return true
}

// State returns where the host stands.
func (h *Host) State() State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state
}

// Ready returns nil when the host takes jobs, and otherwise an error with code
// unavailable that says where it stands. During the start its field is [jobhost.FieldStart], and
// it names the workers that are being loaded.
func (h *Host) Ready() error { return h.ready(h.loading.String) }

// ready is Ready with its own way to say how far the start is.
func (h *Host) ready(progress func() string) error {
	s := h.State()
	if s == Running {
		return nil
	}
	e := &jobhost.Error{Code: jobhost.CodeUnavailable, Message: fmt.Sprintf("the host is %s", s)}
	if s == Starting {
		e.Field = jobhost.FieldStart
		e.Hint = "try again in a few seconds; a plugin is compiled when the host first sees it, and loads faster at the next start"
		if text := progress(); text != "" {
			e.Message += ": " + text
		}
	}
	return e
}

// AwaitReady returns [Host.Server] when the host takes jobs, and otherwise why it never
// will: its start has failed, it has stopped, or ctx has ended.
func (h *Host) AwaitReady(ctx context.Context) (jobhost.Server, error) {
	select {
	case <-h.started:
		if err := h.Ready(); err != nil {
			return nil, err
		}
		return h.Server()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
