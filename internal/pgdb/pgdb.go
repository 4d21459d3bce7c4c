// Package pgdb is what the stores on PostgreSQL have in common: connections, the term in which one of several hosts may
// write, a group commit that hosts whose term has ended are fenced out of, the table of hosts, and migrations.
//
//	Open ─► DB ─► Acquire ─► Term ─► NewWriter ─► Writer ◄─ Write(Change)
//	        │                │                    │
//	        │                │                    └─ a commit is one message: the fence, then the rows of all changes
//	        │                └─ the lease, renewed each second
//	        └─ Read, Ask: snapshots, on any host; Send: statements that need no term
//
// A [Change] works on an image: the rows that it needs, kept in memory by a [Member] of the commit, mostly as a [Table].
// The leader is the only host that writes, so a row that was read stays true. Changes that look for rows in other ways
// run statements in the same transaction: see [Tx.Direct].
//
// Where to look:
//
//	connections  connect.go, servers.go (which of several), pooler.go, errors.go (which errors mean what)
//	terms        term.go (take over, release), lease.go (heartbeats), hosts.go (the table of hosts, and wishes)
//	commits      writer.go (the queue), tx.go (how changes are applied), table.go (rows in memory), commit.go (the fence,
//	             and what became of a commit whose connection was lost)
//	the rest     session.go and send.go (reads, and writes without a term), schema.go (tables)
//
// A term has three goroutines: one writes, one calls Done, one renews the lease. [Writer.Close] and [Term.Release] wait
// for them.
package pgdb

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobhost/jobhost"
)

// Config says which database it is, and which host uses it.
type Config struct {
	// URL is what libpq takes: postgres://USER@HOST:PORT/DATABASE?…, or key=value pairs. It may name several servers.
	URL string
	// Password is that of the user; empty = what URL says, else PGPASSWORD, else PGPASSFILE.
	Password string
	// Schema holds all tables; empty = jobhost.
	Schema string
	// Shard numbers the term that hosts compete for: there is one, 0. The tables term, lease and batch have it in their
	// keys, so that there could be more.
	Shard int16
	// Host and Address name this host to the others.
	Host, Address string
	// Lease is how long a term lasts when it isn't renewed; 0 = 5 s.
	Lease time.Duration
	// Relaxed accepts servers that may lose acknowledged commits: fsync or synchronous_commit is off.
	Relaxed bool
	// LockTime is how long a commit waits for a lock that a session of others has; 0 = 10 s.
	LockTime time.Duration
	// Logger is required.
	Logger *slog.Logger
	// Observer is notified of the outcome of commits.
	Observer Observer
}

// Observer holds callbacks, for metrics. They must not block; nil = no call.
type Observer struct {
	// Committed is called for each commit with how many changes it made.
	Committed func(changes int, took time.Duration)
	// Fenced is called when a commit was refused because another host leads.
	Fenced func()
	// Resolved is called when a commit lost its connection, and whether it was applied has been found out.
	Resolved func(applied bool)
	// Lost is called when the database lacks commits that it had acknowledged, as after a failover to a stale replica.
	Lost func(commits int64)
}

// defaultLockTime is as long as a client waits for a leader. A lock that is held for longer, by VACUUM FULL or by a
// transaction that was forgotten, must not keep this host from ending.
const defaultLockTime = 10 * time.Second

// DefaultLease is how long a term lasts when it isn't renewed, unless the manifest says otherwise.
const DefaultLease = 5 * time.Second

// DB is a database that hosts share. Its methods may be called from many goroutines.
type DB struct {
	cfg    Config
	conn   *pgx.ConnConfig // for connections outside of the pools
	pool   *pgxpool.Pool   // for reads
	slow   chan struct{}   // has an element for each Read under way
	send   *pgxpool.Pool   // for Send
	closed sync.Once

	servers servers                // that the URL names
	address atomic.Pointer[string] // see SetAddress
}

// Timeouts.
const (
	connectTime   = 3 * time.Second
	statementTime = 5 * time.Second // of a read for people
)

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Open connects to a database and checks that it keeps what it acknowledges. It changes nothing.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	cfg.Schema, cfg.Lease = cmp.Or(cfg.Schema, "jobhost"), cmp.Or(cfg.Lease, DefaultLease)
	cfg.LockTime = cmp.Or(cfg.LockTime, defaultLockTime)
	if !schemaName.MatchString(cfg.Schema) {
		return nil, jobhost.Invalid("store", "", "%.80q is no name of a schema", cfg.Schema)
	}
	db := &DB{cfg: cfg, slow: make(chan struct{}, max(readConns-1, 1))}
	db.SetAddress(cfg.Address)
	pool, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, explainURL(err)
	}
	db.prepare(pool.ConnConfig)
	db.conn = pool.ConnConfig.Copy()
	db.warnExposed()
	pool.MaxConns, pool.MinConns = readConns, 0
	pool.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		db.servers.order(&c.Config)
		return nil
	}
	if db.pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return nil, explainURL(err)
	}
	pool = pool.Copy()
	pool.MaxConns = sendConns
	if db.send, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		db.pool.Close()
		return nil, explainURL(err)
	}
	if err = db.checkPooler(ctx); err == nil {
		err = db.check(ctx)
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// Logger is that of the configuration.
func (db *DB) Logger() *slog.Logger { return db.cfg.Logger }

// Lease is how long a term lasts when it isn't renewed.
func (db *DB) Lease() time.Duration { return db.cfg.Lease }

// Close closes the connections. Terms must have been released before.
func (db *DB) Close() {
	db.closed.Do(func() {
		db.pool.Close()
		db.send.Close()
	})
}

// SQL returns a statement with the schema's name in place of "jobhost.".
func (db *DB) SQL(text string) string {
	if db.cfg.Schema == "jobhost" {
		return text
	}
	return strings.ReplaceAll(text, "jobhost.", db.cfg.Schema+".")
}

var errSlow = &jobhost.Error{Code: jobhost.CodeUnavailable, Message: fmt.Sprintf("the database did not answer within %v", 2*statementTime)}
