package pgdb

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/logkey"
)

// beatTime is how often a lease is renewed.
const beatTime = time.Second

// clock is the database's: this host's monotonic clock and an offset, which each heartbeat measures.
type clock struct{ offset atomic.Int64 } // what to add to the time of this host, in nanoseconds

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// set notes that the database showed a time between two of this host.
func (c *clock) set(before, after, shown time.Time) {
	middle := before.Add(after.Sub(before) / 2)
	c.offset.Store(int64(shown.Sub(middle)))
}

// beat renews the lease until the term is over, on a connection of its own: the writer's is busy. It begins at once, since
// to connect to a server that is slow may take half of the lease.
func (t *Term) beat() {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close(context.Background())
		}
	}()
	for wait := time.Duration(0); sleep(t.ctx, wait); wait = beatTime {
		t.mu.Lock()
		until := t.until
		t.mu.Unlock()
		// What is left of the lease is for the host to end what it does.
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

// renewOn renews the lease on a connection, which it replaces if it is lost.
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

// renewLease also returns the number of the last batch.
const renewLease = `WITH renewed AS (
		UPDATE jobhost.lease SET renewed=clock_timestamp() WHERE shard=$1 AND epoch=$2 AND NOT released RETURNING renewed)
	SELECT (SELECT renewed FROM renewed), (SELECT max(n) FROM jobhost.batch WHERE shard=$1)`

// renewWith renews the lease. It also looks whether the database has all that it has acknowledged: one that was replaced
// may lack some, and nothing else would notice before the next commit.
func (t *Term) renewWith(ctx context.Context, conn *pgx.Conn) error {
	epoch, acknowledged, before := t.Epoch(), t.acknowledged.Load(), time.Now()
	var shown *time.Time
	var last *int64
	err := conn.QueryRow(ctx, t.db.SQL(renewLease), t.db.cfg.Shard, epoch).Scan(&shown, &last)
	switch {
	case err != nil:
		return err
	case acknowledged > 0 && (last == nil || *last < acknowledged):
		t.lacks(acknowledged, last)
		return t.Err()
	case shown == nil:
		return t.taken(epoch)
	}
	t.renewed(before, *shown)
	return nil
}

// taken says whether another host has taken over, if a heartbeat under an epoch changed nothing. This host may have
// raised the epoch itself, which renews the lease.
func (t *Term) taken(epoch int64) error {
	t.raising.Lock()
	defer t.raising.Unlock()
	if t.Epoch() != epoch {
		return nil
	}
	return errTaken
}

// renewed notes that the lease was renewed. It is counted from before that was asked for, so it is never over later
// here than in the database.
func (t *Term) renewed(before, shown time.Time) {
	t.clock.set(before, time.Now(), shown)
	t.mu.Lock()
	t.until = before.Add(t.db.cfg.Lease)
	t.mu.Unlock()
}

var errTaken = errors.Join(ErrTermOver, errors.New("another host has taken over"))
