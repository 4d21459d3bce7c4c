package pgdb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// readConns is how many connections there are for reads at most.
const readConns = 4

// Session runs statements one after the other, in a transaction or a snapshot. Its statements name tables as
// jobhost.NAME, whatever the schema is.
type Session struct {
	db   *DB
	ctx  context.Context //nolint:containedctx // of the transaction, which is as short-lived as the session
	conn interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
		CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
	}
}

// withoutJIT turns compilation off for statements that look up rows. For lookups of many ranges of keys the planner expects
// a long run, and would spend a second on compiling what takes milliseconds.
const withoutJIT = "SET LOCAL jit=off"

// Exec runs a statement and returns how many rows it changed.
func (s *Session) Exec(sql string, args ...any) (int64, error) {
	tag, err := s.conn.Exec(s.ctx, s.db.SQL(sql), args...)
	return tag.RowsAffected(), err
}

// Each runs a query, scans each row into the variables and calls fn.
func (s *Session) Each(into []any, fn func() error, sql string, args ...any) error {
	rows, err := s.conn.Query(s.ctx, s.db.SQL(sql), args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, into, fn)
	return err
}

// Numbers runs a query whose columns are all bigint and not NULL, and calls fn with each row, which fn must not retain. For
// many rows it is several times as fast as Each.
func (s *Session) Numbers(fn func(row []int64), sql string, args ...any) error {
	rows, err := s.conn.Query(s.ctx, s.db.SQL(sql), args...)
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

// One runs a query for one row, scans it into the variables, and reports whether there is one.
func (s *Session) One(into []any, sql string, args ...any) (found bool, err error) {
	rows, err := s.conn.Query(s.ctx, s.db.SQL(sql), args...)
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

// Copy adds rows to a table, whose name is given without the schema: those that next returns until it returns nil. They are
// sent as they come, however many there are.
func (s *Session) Copy(table string, columns []string, next func() ([]any, error)) (int64, error) {
	var failed error
	n, err := s.conn.CopyFrom(s.ctx, pgx.Identifier{s.db.cfg.Schema, table}, columns, pgx.CopyFromFunc(func() (row []any, err error) {
		row, failed = next()
		return row, failed
	}))
	if failed != nil { // err says only that the client had an error
		err = failed
	}
	return n, err
}

// Read runs fn in one snapshot, which contains every change that was acknowledged before. If the connection is lost fn runs
// again, so it must start by dropping what it collected before. Lists are read in this way, and may take seconds, so they leave
// a connection to what the host needs to run tasks.
func (db *DB) Read(ctx context.Context, fn func(*Session) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*statementTime, errSlow)
	defer cancel()
	select {
	case db.slow <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-db.slow }()
	return explainRead(ctx, retryWhileDown(ctx, db.pool, func() error { return db.readOnce(ctx, statementTime, fn) }))
}

// ReadLong is Read for what a term begins with: it may take as long as it does. With a limit no host could lead once the
// tables are so large, or the server is so slow, that it is exceeded.
func (db *DB) ReadLong(ctx context.Context, fn func(*Session) error) error {
	return explainRead(ctx, retryWhileDown(ctx, db.pool, func() error { return db.readOnce(ctx, 0, fn) }))
}

// retryWhileDown retries while the server can't be reached, for up to statementTime: one that restarts, or fails over, is
// back within seconds. Otherwise attempts of tasks would fail because they read a key just then.
func retryWhileDown(ctx context.Context, pool *pgxpool.Pool, do func() error) error {
	until, wait := time.Now().Add(statementTime), time.Duration(0)
	for {
		err := do()
		full := stateOf(err) == tooManyConnections
		if !isConnLost(err) && !full || ctx.Err() != nil || time.Now().After(until) {
			return err
		}
		if !full { // else those that there are would be lost to others
			pool.Reset() // all connections to a server that restarted are gone
		}
		if !sleep(ctx, wait) {
			return err
		}
		wait = min(2*wait+10*time.Millisecond, maxWait)
	}
}

// retryOnce runs do, and runs it again on a new connection if the first was lost: after a restart or a failover of the server
// all connections in the pool are.
func (db *DB) retryOnce(ctx context.Context, do func(ctx context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, 2*statementTime)
	defer cancel()
	err := do(within)
	if isConnLost(err) {
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

// maxWait bounds the pauses of retryWhileDown.
const maxWait = 500 * time.Millisecond

// readOnce takes a connection of the pool. One on which the transaction is still open when it comes back is closed. A
// statement may take as long as limit; 0 = there is none.
func (db *DB) readOnce(ctx context.Context, limit time.Duration, fn func(*Session) error) (err error) {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	b.Queue("SELECT set_config('statement_timeout', $1, true)", strconv.FormatInt(limit.Milliseconds(), 10))
	b.Queue(withoutJIT)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	err = fn(&Session{db: db, ctx: ctx, conn: conn})
	_, ended := conn.Exec(ctx, "ROLLBACK") // there is nothing to commit
	return errors.Join(err, ended)
}

// Ask runs reads as one message, in one snapshot. If the connection is lost, queue is called again.
func (db *DB) Ask(ctx context.Context, queue func(b *pgx.Batch)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*statementTime, errSlow)
	defer cancel()
	return explainRead(ctx, retryWhileDown(ctx, db.pool, func() error {
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
