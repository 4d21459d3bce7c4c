package pgdb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Session runs statements one after the other, in a transaction or a snapshot. Its statements name tables as
// jobhost.NAME, whatever the schema is.
type Session struct {
	db  *DB
	ctx context.Context //nolint:containedctx // of the transaction, which is as short-lived as the session
	on  interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
		CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
	}
}

// withoutJIT goes before statements that look for rows. The planner takes a look for many ranges of keys for a long one,
// and a second of compilation would be spent on what takes milliseconds.
const withoutJIT = "SET LOCAL jit=off"

// Exec runs a statement and returns how many rows it has changed.
func (s *Session) Exec(sql string, args ...any) (int64, error) {
	tag, err := s.on.Exec(s.ctx, s.db.SQL(sql), args...)
	return tag.RowsAffected(), err
}

// Each runs a query and calls fn for each row, which was scanned into the variables.
func (s *Session) Each(into []any, fn func() error, sql string, args ...any) error {
	rows, err := s.on.Query(s.ctx, s.db.SQL(sql), args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, into, fn)
	return err
}

// Numbers runs a query whose columns are all bigint and not NULL, and calls fn with each row, which it may not keep. For
// many rows it takes a fraction of the time of Each.
func (s *Session) Numbers(fn func(row []int64), sql string, args ...any) error {
	rows, err := s.on.Query(s.ctx, s.db.SQL(sql), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	row := make([]int64, len(rows.FieldDescriptions()))
	for rows.Next() {
		for i, value := range rows.RawValues() {
			if d := rows.FieldDescriptions()[i]; d.DataTypeOID != pgtype.Int8OID || d.Format != pgtype.BinaryFormatCode || len(value) != 8 {
				return fmt.Errorf("column %s is no bigint", d.Name)
			}
			row[i] = int64(binary.BigEndian.Uint64(value))
		}
		fn(row)
	}
	return rows.Err()
}

// One runs a query for one row, which it scans into the variables, and reports whether there is one.
func (s *Session) One(into []any, sql string, args ...any) (found bool, err error) {
	rows, err := s.on.Query(s.ctx, s.db.SQL(sql), args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	if rows.Next() {
		found = true
		if err := rows.Scan(into...); err != nil {
			return false, err
		}
	}
	rows.Close()
	return found, rows.Err()
}

// Copy adds rows to a table, by its name without the schema's: those that next returns until there is none, or an error.
// They are sent as they come, so that there may be any number of them.
func (s *Session) Copy(table string, columns []string, next func() ([]any, error)) (int64, error) {
	var failed error
	n, err := s.on.CopyFrom(s.ctx, pgx.Identifier{s.db.cfg.Schema, table}, columns, pgx.CopyFromFunc(func() (row []any, err error) {
		row, failed = next()
		return row, failed
	}))
	if failed != nil { // the server says only that there was an error
		err = failed
	}
	return n, err
}

// Read runs fn in one snapshot, which contains every change that was acknowledged before. fn may run again if the
// connection is lost before it has returned, so what it collects must begin with it. Lists are read in this way, and may
// take seconds, so they leave a connection to what the host needs to run tasks.
func (db *DB) Read(ctx context.Context, fn func(*Session) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*statementTime, errSlow)
	defer cancel()
	select {
	case db.slow <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-db.slow }()
	return explainRead(ctx, patiently(ctx, db.pool, func() error { return db.readOnce(ctx, fn) }))
}

// patiently does something anew while the server can't be reached: one that is restarted, or replaced by another, is back
// within seconds. Attempts that read keys would fail otherwise.
func patiently(ctx context.Context, pool *pgxpool.Pool, do func() error) error {
	until, wait := time.Now().Add(statementTime), time.Duration(0)
	for {
		err := do()
		full := stateOf(err) == tooManyConnections
		if !isLost(err) && !full || ctx.Err() != nil || time.Now().After(until) {
			return err
		}
		if !full { // else those that there are would be lost to others
			pool.Reset() // of a server that was restarted, all connections are gone
		}
		if !sleep(ctx, wait) {
			return err
		}
		wait = min(2*wait+10*time.Millisecond, maxWait)
	}
}

// twice asks the server on a connection of the pool, and once more on a new one if that is lost: after a restart or a
// failover of the server all that the pool has are. do may run twice.
func (db *DB) twice(ctx context.Context, do func(ctx context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, 2*statementTime)
	defer cancel()
	err := do(within)
	if isLost(err) {
		db.pool.Reset()
		if within.Err() == nil {
			err = do(within)
		}
	}
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return errSlow
	}
	return err
}

// maxWait is how long it waits at most before that.
const maxWait = 500 * time.Millisecond

// readOnce takes a connection of the pool. One on which the transaction is still open when it comes back is closed.
func (db *DB) readOnce(ctx context.Context, fn func(*Session) error) (err error) {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	b.Queue("SELECT set_config('statement_timeout', $1, true)", statementTime.String())
	b.Queue(withoutJIT)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	err = fn(&Session{db: db, ctx: ctx, on: conn})
	_, ended := conn.Exec(ctx, "ROLLBACK") // there is nothing to commit
	return errors.Join(err, ended)
}

// Ask runs a batch of reads as one message, in one snapshot.
func (db *DB) Ask(ctx context.Context, queue func(b *pgx.Batch)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*statementTime, errSlow)
	defer cancel()
	return explainRead(ctx, patiently(ctx, db.pool, func() error {
		b := &pgx.Batch{}
		b.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
		queue(b)
		b.Queue("COMMIT")
		conn, err := db.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		return conn.SendBatch(ctx, b).Close()
	}))
}
