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

// Term is the time in which one host may write. It ends when another host takes over, when its lease could not be
// renewed in time, or when it is released.
type Term struct {
	db    *DB
	epoch atomic.Int64 // rises when the outcome of a commit is looked up
	conn  *pgx.Conn    // the writer's
	// backend is the process of the session in the server that may hold the fence.
	backend atomic.Uint32
	clock   clock
	// acknowledged is the number of the last batch that was.
	acknowledged atomic.Int64
	lost         sync.Once // says that the database has lost some

	ctx  context.Context // ends with the term
	end  context.CancelCauseFunc
	done sync.WaitGroup

	raising sync.Mutex // held while this host raises its own epoch

	mu    sync.Mutex // protects the rest
	until time.Time  // when the lease is over, by this host's clock
}

// Leader is who leads, as the database says.
type Leader struct {
	Epoch         int64
	Host, Address string
	// Renewed is the age of the last heartbeat.
	Renewed  time.Duration
	Released bool
	backend  uint32
}

// Fractions of the lease: after which time without an answer nothing new is begun, and after which all ends.
const (
	holdAt = 0.6
	endAt  = 0.8
)

// Leader returns who leads, or led last; the zero Leader = nobody has led yet.
func (db *DB) Leader(ctx context.Context) (l Leader, err error) {
	err = db.twice(ctx, func(ctx context.Context) error {
		return db.pool.QueryRow(ctx, db.SQL(`SELECT epoch, host, address, extract(epoch FROM clock_timestamp()-renewed)::float8, released, backend
			FROM jobhost.lease WHERE shard=$1`), db.cfg.Shard).Scan(&l.Epoch, &l.Host, &l.Address, (*seconds)(&l.Renewed), &l.Released, &l.backend)
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

// Vacant says why there is no leader: "first", "released" or "expired"; empty = there may be one.
func (l *Leader) Vacant(lease time.Duration) string {
	switch {
	case l.Epoch == 0:
		return "first"
	case l.Released:
		return "released"
	case l.Renewed >= lease:
		return "expired"
	}
	return ""
}

// pollTime is how often a standby looks whether the leader is there.
const pollTime = 500 * time.Millisecond

// Acquire waits until this host leads, and begins its term. It returns an error when ctx ends, or when the
// database can't be used at all; a database that doesn't answer is asked again.
func (db *DB) Acquire(ctx context.Context) (*Term, error) {
	for {
		t, err := db.try(ctx)
		switch {
		case t != nil:
			return t, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && !isLost(err) && stateOf(err) != "":
			return nil, err
		case err != nil:
			db.cfg.Logger.Warn("ask who leads", logkey.Error, err)
		}
		if !sleep(ctx, pollTime+rand.N(pollTime/2)) {
			return nil, context.Cause(ctx)
		}
	}
}

// try begins a term if there is no leader any more; nil and no error = there is one.
func (db *DB) try(ctx context.Context) (*Term, error) {
	l, err := db.Leader(ctx)
	if err != nil || l.Vacant(db.cfg.Lease) == "" {
		return nil, err
	}
	return db.TakeOver(ctx, l)
}

// TakeOver ends the term of a leader, whatever it does, and begins one; nil = another host was faster.
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
	t.done.Go(t.beat)
	return t, nil
}

// lockTime is how long a takeover waits for a batch of the old leader that is under way.
const lockTime = "500ms"

// raise ends the term of a leader: what it has not committed by now is refused. It reports whether this host leads;
// otherwise another one was faster.
func (t *Term) raise(ctx context.Context, l Leader) (taken bool, err error) {
	t.raising.Lock()
	defer t.raising.Unlock()
	for range 3 {
		taken, err = t.raiseOnce(ctx, l.Epoch)
		if stateOf(err) != lockNotAvailable {
			return taken, err
		}
		// A host that was stopped within a batch holds the lock for as long as it is.
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
	var backend uint32 // the server's own word: a pooler tells connections another
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

// Epoch numbers the terms of a shard: a later one has a higher number.
func (t *Term) Epoch() int64 { return t.epoch.Load() }

// Done is closed when the term is over; Err says why.
func (t *Term) Done() <-chan struct{} { return t.ctx.Done() }

// Err returns why the term is over, which wraps [ErrTermOver]; nil = it is not.
func (t *Term) Err() error { return context.Cause(t.ctx) }

// Now is the database's time, as far as this host knows.
func (t *Term) Now() time.Time { return t.clock.now() }

// Holding reports whether nothing new may be begun, since the lease was not renewed for a while.
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

// Release ends the term in an orderly way, so that another host needn't wait until the lease is over. The writer has
// to be closed.
func (t *Term) Release(ctx context.Context) error {
	t.over("this host has given it up")
	t.done.Wait()
	err := t.db.twice(ctx, func(ctx context.Context) error {
		_, err := t.db.pool.Exec(ctx, t.db.SQL("UPDATE jobhost.lease SET released=true WHERE shard=$1 AND epoch=$2"), t.db.cfg.Shard, t.Epoch())
		return err
	})
	_ = t.conn.Close(ctx) // it may be lost, which makes no difference any more
	return err
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
