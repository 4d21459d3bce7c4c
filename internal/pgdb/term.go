package pgdb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/term"
)

// ErrTermOver is why a store takes no more changes: another host leads, or may.
var ErrTermOver = term.ErrOver

// Term is the time in which one host, the leader, may write. It ends when another host takes over, when its lease could not
// be renewed in time, or when it is released.
type Term struct {
	db    *DB
	epoch atomic.Int64 // rises when the outcome of a commit is looked up
	conn  *pgx.Conn    // the writer's
	// backend is the process ID of the session that may hold the fence.
	backend atomic.Uint32
	clock   clock
	// acknowledged is the number of the last batch that the database acknowledged.
	acknowledged atomic.Int64
	lost         sync.Once // reports that the database has lost some

	ctx  context.Context // ends with the term
	end  context.CancelCauseFunc
	done sync.WaitGroup

	raising sync.Mutex // held while this host raises its own epoch

	mu    sync.Mutex // protects the rest
	until time.Time  // when the lease is over, by this host's clock
}

// Leader is the host that leads or led last, as the database has it.
type Leader struct {
	Epoch         int64
	Host, Address string
	// Renewed is the age of the last heartbeat, and Beat is when that was, both by the database's clock.
	Renewed  time.Duration
	Beat     time.Time
	Released bool
	backend  uint32
}

// Fractions of the lease after which, without a renewal, no new work begins, and all work ends.
const (
	holdAt = 0.6
	endAt  = 0.8
)

// Leader returns the host that leads or led last; the zero Leader = no host has led yet.
func (db *DB) Leader(ctx context.Context) (l Leader, err error) {
	err = db.retryOnce(ctx, func(ctx context.Context) error {
		return db.pool.QueryRow(ctx, db.SQL(`SELECT epoch, host, address, extract(epoch FROM clock_timestamp()-renewed)::float8, renewed, released, backend
			FROM jobhost.lease WHERE shard=$1`), db.cfg.Shard).
			Scan(&l.Epoch, &l.Host, &l.Address, (*seconds)(&l.Renewed), &l.Beat, &l.Released, &l.backend)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Leader{}, nil
	}
	return l, explainRead(ctx, err)
}

// seconds scans a number of seconds.
type seconds time.Duration

// Scan implements [database/sql.Scanner].
func (s *seconds) Scan(v any) error {
	f, ok := v.(float64)
	if !ok {
		return fmt.Errorf("%T is no number of seconds", v)
	}
	*s = seconds(f * float64(time.Second))
	return nil
}

// Why there is no leader.
const (
	First    = "first"    // no host has led yet
	Released = "released" // the leader has released its term
	Expired  = "expired"  // the leader has not renewed its lease
)

// Vacant returns why there is no leader: [First], [Released] or [Expired]; empty = there may be one.
func (l *Leader) Vacant(lease time.Duration) string {
	switch {
	case l.Epoch == 0:
		return First
	case l.Released:
		return Released
	case l.Renewed >= lease:
		return Expired
	}
	return ""
}

// pollTime is how often Acquire looks whether there is a leader.
const pollTime = 500 * time.Millisecond

// Acquire waits until no other host leads, and begins a term of this one. It returns an error when ctx ends, or when the
// database refuses it; one that doesn't answer is asked again.
func (db *DB) Acquire(ctx context.Context) (*Term, error) {
	for {
		t, err := db.try(ctx)
		switch {
		case t != nil:
			return t, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && !isConnLost(err) && stateOf(err) != "":
			return nil, err
		case err != nil:
			db.cfg.Logger.Warn("ask who leads", logkey.Error, err)
		}
		if !sleep(ctx, pollTime+rand.N(pollTime/2)) {
			return nil, context.Cause(ctx)
		}
	}
}

// try begins a term if there is no leader; nil and no error = there is one.
func (db *DB) try(ctx context.Context) (*Term, error) {
	l, err := db.Leader(ctx)
	if err != nil || l.Vacant(db.cfg.Lease) == "" {
		return nil, err
	}
	return db.TakeOver(ctx, l)
}

// TakeOver ends the term of a leader by force, and begins one of this host; nil = another host was faster.
func (db *DB) TakeOver(ctx context.Context, l Leader) (*Term, error) {
	conn, err := db.connectToWrite(ctx)
	if err != nil {
		return nil, err
	}
	t := &Term{db: db, conn: conn}
	t.ctx, t.end = context.WithCancelCause(context.Background())
	if taken, err := t.raise(ctx, l); err != nil || !taken {
		t.end(nil)
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	t.done.Go(t.keepLease)
	return t, nil
}

// lockTime is how long a takeover waits for a commit of the old leader that is under way.
const lockTime = "500ms"

// raise raises the epoch of a leader by one, which ends its term: what it has not committed by then is refused. It reports
// whether this host has the new epoch; otherwise another one was faster.
func (t *Term) raise(ctx context.Context, l Leader) (taken bool, err error) {
	t.raising.Lock()
	defer t.raising.Unlock()
	for range 3 {
		taken, err = t.raiseOnce(ctx, l.Epoch)
		if stateOf(err) != lockNotAvailable {
			return taken, err
		}
		// A process that was stopped (SIGSTOP) during a commit holds the lock until it continues.
		_, err = t.conn.Exec(ctx, "SELECT pg_terminate_backend($1) WHERE EXISTS (SELECT FROM pg_stat_activity WHERE pid=$1 AND usename=current_user)", int32(l.backend))
		if err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("the term of %s can't be ended: a transaction of its session %d holds it", l.Host, l.backend)
}

// raiseOnce changes fence and lease together, so that they never differ.
func (t *Term) raiseOnce(ctx context.Context, from int64) (taken bool, err error) {
	db := t.db
	var before, shown time.Time
	var backend uint32 // as the server has it: a pooler gives its clients other numbers
	var last *int64    // batch
	err = pgx.BeginFunc(ctx, t.conn, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue("SELECT set_config('lock_timeout', $1, true)", lockTime)
		b.Queue(db.SQL("INSERT INTO jobhost.term (shard, epoch) VALUES ($1, 0) ON CONFLICT DO NOTHING"), db.cfg.Shard)
		b.Queue(db.SQL("UPDATE jobhost.term SET epoch=epoch+1 WHERE shard=$1 AND epoch=$2"), db.cfg.Shard, from).Exec(func(tag pgconn.CommandTag) error {
			taken = tag.RowsAffected() == 1
			return nil
		})
		if err := tx.SendBatch(ctx, b).Close(); err != nil || !taken {
			return err
		}
		before = time.Now()
		return tx.QueryRow(ctx, db.SQL(`INSERT INTO jobhost.lease (shard, epoch, host, address, backend, renewed, released)
			VALUES ($1, $2, $3, $4, pg_backend_pid(), clock_timestamp(), false)
			ON CONFLICT (shard) DO UPDATE SET epoch=excluded.epoch, host=excluded.host, address=excluded.address,
			backend=excluded.backend, renewed=excluded.renewed, released=false
			RETURNING renewed, backend, (SELECT max(n) FROM jobhost.batch WHERE shard=$1)`),
			db.cfg.Shard, from+1, db.cfg.Host, *db.address.Load()).Scan(&shown, &backend, &last)
	})
	if err == nil && taken {
		t.epoch.Store(from + 1)
		t.backend.Store(backend)
		if last != nil && t.acknowledged.Load() == 0 {
			t.acknowledged.Store(*last) // by the terms before
		}
		t.renewed(before, shown)
	}
	return taken, err
}

// Epoch is the number of the term; later terms have higher ones.
func (t *Term) Epoch() int64 { return t.epoch.Load() }

// Done is closed when the term is over; Err says why.
func (t *Term) Done() <-chan struct{} { return t.ctx.Done() }

// Err returns why the term is over, which wraps [ErrTermOver]; nil = it is not.
func (t *Term) Err() error { return context.Cause(t.ctx) }

// Now is the time of the database, as measured at the last renewal.
func (t *Term) Now() time.Time { return t.clock.now() }

// Holding reports whether no new work may begin, since the lease is due for renewal for too long.
func (t *Term) Holding() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(t.until) < time.Duration((1-holdAt)*float64(t.db.cfg.Lease))
}

// LeaseAge is how long ago the lease was renewed.
func (t *Term) LeaseAge() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.db.cfg.Lease - time.Until(t.until)
}

// over ends the term.
func (t *Term) over(why string) {
	t.end(fmt.Errorf("%w: %s", ErrTermOver, why))
}

// Release ends the term in good order, so that another host needn't wait for the lease to expire. The writer must have
// been closed.
func (t *Term) Release(ctx context.Context) error {
	t.over("this host has given it up")
	t.done.Wait()
	err := t.db.retryOnce(ctx, func(ctx context.Context) error {
		_, err := t.db.pool.Exec(ctx, t.db.SQL("UPDATE jobhost.lease SET released=true WHERE shard=$1 AND epoch=$2"), t.db.cfg.Shard, t.Epoch())
		return err
	})
	_ = t.conn.Close(ctx) // it may be lost, which makes no difference any more
	return explain(ctx, "write to PostgreSQL", err)
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
