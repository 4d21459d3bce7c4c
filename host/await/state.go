package await

import (
	"errors"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/state"
)

// Changes are the events of a subscription to states, taken by ops. All reading of
// the subscription must go through one Changes. It is safe for concurrent use.
type Changes struct {
	sub    *state.Subscription
	events *op.Inlet[*state.Event]
}

// NewChanges returns the events of sub, which is still closed by its owner.
func NewChanges(sub *state.Subscription) *Changes {
	return &Changes{sub: sub, events: op.NewInlet(sub.Events())}
}

// Next returns an op that results in the next event, or when there are no more in
// [state.Subscription.Err]. If it loses, the event is the next one still. A goroutine
// stands before the subscription while it waits.
func (c *Changes) Next() op.Op[*state.Event] {
	return op.WrapResult(c.events.Recv(), func(e *state.Event, err error) (*state.Event, error) {
		if errors.Is(err, op.ErrClosed) {
			err = c.sub.Err()
		}
		return e, err
	})
}
