// Package pgdb is what the stores on PostgreSQL share: connections, the term in
// which one host of many may write, the group commit behind its fence, and
// migrations.
//
// It starts goroutines: a writer, one that calls Done, and one that renews the lease. Closing the
// writer and releasing the term wait for them.
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
	// Password is used if URL has none; empty = what PGPASSFILE and PGPASSWORD say.
	Password string
	// Schema holds all tables; empty = jobhost.
	Schema string
	// Shard numbers the term; hosts with the same one compete for it.
	Shard int16
	// Host and Address name this host to the others.
	Host, Address string
	// Lease is how long a term lasts without a heartbeat; 0 = 5 s.
	Lease time.Duration
	// Relaxed accepts servers that may lose acknowledged commits: fsync or synchronous_commit is off.
	Relaxed bool
	// LockTime is how long a commit waits for a lock that a session of others has; 0 = 10 s.
	LockTime time.Duration
	// Readers is how many connections answer questions; 0 = 4.
	Readers int
	// Logger is required.
	Logger *slog.Logger
	// Observer is notified of what becomes of commits.
	Observer Observer
}

// Observer holds what is called as it happens, and must not block; nil = it isn't called.
type Observer struct {
	// Committed is called for each commit with how many changes it made.
	Committed func(changes int, took time.Duration)
	// Fenced is called when a commit was refused because another host leads.
	Fenced func()
	// Resolved is called when the outcome of a commit was unknown and has been found out.
	Resolved func(applied bool)
	// Lost is called when the database no longer has commits that it had acknowledged.
	Lost func(commits int64)
}

// defaultLockTime is as long as a client waits for a leader. A lock that is held for longer, by VACUUM FULL or by a
// transaction that was forgotten, must not keep this host from ending.
const defaultLockTime = 10 * time.Second

// DefaultLease is how long a term lasts without a heartbeat, unless the manifest says otherwise.
const DefaultLease = 5 * time.Second

// DB is a database that hosts share. Its methods may be called from many goroutines.
type DB struct {
	cfg    Config
	conn   *pgx.ConnConfig // for connections besides the pool's
	pool   *pgxpool.Pool   // for reads
	slow   chan struct{}   // has an element for each Read under way
	send   *pgxpool.Pool   // for Send
	closed sync.Once

	servers servers                // that the URL names
	address atomic.Pointer[string] // see SetAddress
}

// Bounds of what a server is given time for.
const (
	connectTime   = 3 * time.Second
	statementTime = 5 * time.Second // of a read for people
)

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Open connects to a database and checks that it keeps what it acknowledges. It changes nothing.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	cfg.Schema, cfg.Lease, cfg.Readers = cmp.Or(cfg.Schema, "jobhost"), cmp.Or(cfg.Lease, DefaultLease), cmp.Or(cfg.Readers, 4)
	cfg.LockTime = cmp.Or(cfg.LockTime, defaultLockTime)
	if !schemaName.MatchString(cfg.Schema) {
		return nil, jobhost.Invalid("store", "", "%.80q is no name of a schema", cfg.Schema)
	}
	db := &DB{cfg: cfg, slow: make(chan struct{}, max(cfg.Readers-1, 1))}
	db.SetAddress(cfg.Address)
	pool, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, explainURL(err)
	}
	db.prepare(pool.ConnConfig)
	db.conn = pool.ConnConfig.Copy()
	pool.MaxConns, pool.MinConns = int32(cfg.Readers), 0
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

// Lease is how long a term lasts without a heartbeat.
func (db *DB) Lease() time.Duration { return db.cfg.Lease }

// Close closes the connections. Terms have to be over.
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
