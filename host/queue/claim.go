package queue

import (
	"context"

	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
)

// claimPage is how many tasks one read claims at most: some megabytes. A host that begins to lead waits for each page.
const claimPage = 65_536

// claims say how much of its worker's backlog a lane has claimed.
type claims struct {
	upTo  record.Place // of the last task that was claimed
	whole bool         // there is nothing behind it
}

// claimAll claims all open tasks of the lane's worker.
func (l *lane) claimAll(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advanceLocked()
	for !l.claims.whole {
		if err := l.claimLocked(ctx, claimPage); err != nil {
			return err
		}
	}
	l.advanceLocked()
	return nil
}

// claimLocked claims up to limit tasks that follow those claimed before.
func (l *lane) claimLocked(ctx context.Context, limit int) error {
	page, err := l.q.store.Claim(ctx, l.name, l.claims.upTo, limit)
	if err != nil {
		return err
	}
	for i := range page {
		l.addClaimedLocked(&page[i])
	}
	if len(page) > 0 {
		l.claims.upTo = page[len(page)-1].Place
	}
	l.claims.whole = len(page) < limit
	return nil
}

func (l *lane) addClaimedLocked(c *record.Claimed) {
	e := order.Entry{
		Key:     c.Key,
		ReadyAt: c.ReadyAt,
		Token:   int32(c.Token),
		Index:   int16(c.Index),
		Level:   int8(c.Level),
		Tried:   c.Attempt > 0,
	}
	l.q.suspects.claimed(e)
	if x := (order.Traits{Group: c.Group, Deadline: c.Deadline}); !l.leaseCrashedLocked(e, x) {
		l.order.Push(e, x)
	}
}
