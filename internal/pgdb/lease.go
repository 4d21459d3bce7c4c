package pgdb

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/logkey"
)

// renewTime is how often a lease is renewed.
const renewTime = time.Second

// clock is the database's: what it showed last, which each heartbeat measures, and what has passed since. That is counted
// by this host's monotonic clock, so that it makes no difference if its time of day is set.
type clock struct{ last atomic.Pointer[reading] }

// reading is what the database's clock showed when this host's did something else.
type reading struct{ here, shown time.Time }

func (c *clock) now() time.Time {
	r := c.last.Load()
	return r.shown.Add(time.Since(r.here))
}

// set takes the time that the database returned to a query which lasted from before to after.
func (c *clock) set(before, after, shown time.Time) {
	c.last.Store(&reading{before.Add(after.Sub(before) / 2), shown})
}

// keepLease renews the lease until the term is over, on a connection of its own, since the writer's is busy. It begins at once:
// to connect to a server that is slow may take half of the lease.
func (t *Term) keepLease() {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close(context.Background())
		}
	}()
	for wait := time.Duration(0); sleep(t.ctx, wait); wait = renewTime {
		t.mu.Lock()
		until := t.until
		t.mu.Unlock()
		// The rest of the lease is for the host to stop what it runs.
		deadline := until.Add(-time.Duration((1 - endAt) * float64(t.db.cfg.Lease)))
		ctx, cancel := context.WithDeadline(t.ctx, deadline)
		err := t.renewOn(ctx, &conn)
		cancel()
		switch {
		case err == nil:
		case errors.Is(err, ErrTermOver):
			t.end(err)
		case !time.Now().Before(deadline):
			t.over("its lease could not be renewed: " + reasonOf(err))
		case t.ctx.Err() == nil:
			t.db.cfg.Logger.Warn("renew the lease", logkey.Error, err)
		}
	}
}

// renewOn renews the lease, and opens the connection again if it was lost.
func (t *Term) renewOn(ctx context.Context, conn **pgx.Conn) error {
	if *conn == nil {
		c, err := t.db.connect(ctx)
		if err != nil {
			return err
		}
		*conn = c
	}
	err := t.renewWith(ctx, *conn)
	if err != nil && (*conn).IsClosed() {
		*conn = nil
	}
	return err
}

// renewLease renews the lease, and returns its time and the number of the last batch.
const renewLease = `WITH renewed AS (
		UPDATE jobhost.lease SET renewed=clock_timestamp() WHERE shard=$1 AND epoch=$2 AND NOT released RETURNING renewed)
	SELECT (SELECT renewed FROM renewed), (SELECT max(n) FROM jobhost.batch WHERE shard=$1)`

// renewWith renews the lease. It also checks that the database still has every commit that it acknowledged: after a
// failover it may not, and an idle leader would notice only at its next commit.
func (t *Term) renewWith(ctx context.Context, conn *pgx.Conn) error {
	epoch, acknowledged, before := t.Epoch(), t.acknowledged.Load(), time.Now()
	var shown *time.Time
	var last *int64
	err := conn.QueryRow(ctx, t.db.SQL(renewLease), t.db.cfg.Shard, epoch).Scan(&shown, &last)
	switch {
	case err != nil:
		return err
	case acknowledged > 0 && (last == nil || *last < acknowledged):
		t.lostCommits(acknowledged, last)
		return t.Err()
	case shown == nil:
		return t.taken(epoch)
	}
	t.renewed(before, *shown)
	return nil
}

// taken returns whether another host has taken over, when there was no lease of an epoch to renew. It has not if this
// host has raised the epoch itself meanwhile, which renews the lease too.
func (t *Term) taken(epoch int64) error {
	t.raising.Lock()
	defer t.raising.Unlock()
	if t.Epoch() != epoch {
		return nil
	}
	return errTaken
}

// renewed notes that the lease was renewed. It counts from before the request was sent, so that it never ends later here
// than in the database.
func (t *Term) renewed(before, shown time.Time) {
	t.clock.set(before, time.Now(), shown)
	t.mu.Lock()
	t.until = before.Add(t.db.cfg.Lease)
	t.mu.Unlock()
}

var errTaken = errors.Join(ErrTermOver, errors.New("another host has taken over"))
