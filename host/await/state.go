package await

import (
	"errors"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/state"
)

// Changes reads the events of a subscription to states as ops. Nothing else may read
// the subscription. It is safe for concurrent use.
type Changes struct {
	sub    *state.Subscription
	events *op.Inlet[*state.Event]
}

// NewChanges returns the events of sub. Closing sub remains up to its owner.
func NewChanges(sub *state.Subscription) *Changes {
	return &Changes{sub: sub, events: op.NewInlet(sub.Events())}
}

// Next returns an op that results in the next event, or at the end in
// [state.Subscription.Err]. If it loses, the event stays the next one. While it
// waits, a goroutine receives from the subscription.
func (c *Changes) Next() op.Op[*state.Event] {
	return op.WrapResult(c.events.Recv(), func(e *state.Event, err error) (*state.Event, error) {
		if errors.Is(err, op.ErrClosed) {
			err = c.sub.Err()
		}
		return e, err
	})
}
