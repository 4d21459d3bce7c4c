// Package sqlitequeue keeps jobs in an SQLite database, for a host that owns
// it alone. It implements [record.Store]; what that demands beyond rows
// (durability, group commit, fail-stop, one process) is done by sqlitedb.
//
// Since the process owns the file, a claim writes nothing: open tasks are read
// in order, and the claim ends with the process. Fencing is by the task's
// token, which every change of its status or lease raises by one.
package sqlitequeue

import (
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// Options say what to open.
type Options = sqlitedb.StoreOptions

// Store is a [record.Store]. Its methods may be called from many goroutines.
type Store struct {
	db     *sqlitedb.DB
	owned  bool // Close closes db
	ledger *ledger
}

var _ record.Roomy = (*Store)(nil)

// Open opens the database of a directory, creating or migrating it if need be.
// Its errors are those of [sqlitedb.Open].
func Open(opts Options) (*Store, error) {
	s, err := sqlitedb.OpenStore(opts, Schemas(), func(db *sqlitedb.DB) (*Store, error) { return New(db) })
	if err != nil {
		return nil, err
	}
	s.owned = true
	return s, nil
}

// Companion keeps something of jobs in tables of its own, in the same database.
// The writer calls its methods, within a transaction.
type Companion interface {
	// Any reports whether there may be anything at all. It is called often.
	Any() bool
	// Removing is called with jobs that are being removed, whatever removes them. Its
	// error undoes the removal, and so does a rollback.
	Removing(tx *sqlitedb.Tx, ids []string) error
}

// New returns a store in a database that was opened with [Schemas] among its
// schemas and may hold other packages' tables too. Closing the store leaves
// the database open.
func New(db *sqlitedb.DB, companions ...Companion) (*Store, error) {
	l := newLedger()
	l.companions = companions
	if err := db.Read(context.Background(), func(r *sqlitedb.Reader) error { return l.load(r) }); err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	return &Store{db: db, ledger: l}, nil
}

// Now implements [record.Store]: the process owns the file, so its clock is the store's.
func (s *Store) Now() time.Time { return time.Now() }

// Failed implements [record.Store]: it is closed when the store has stopped after an I/O error.
func (s *Store) Failed() <-chan struct{} { return s.db.Failed() }

// Err implements [record.Store].
func (s *Store) Err() error { return s.db.Err() }

// Full implements [record.Roomy].
func (s *Store) Full() error { return s.db.Full() }

// Flowing implements [record.Roomy].
func (s *Store) Flowing() <-chan struct{} { return s.db.Flowing() }

// GiveUp implements [record.Roomy].
func (s *Store) GiveUp() { s.db.GiveUp() }

// Close implements [record.Store].
func (s *Store) Close() error {
	if !s.owned {
		return nil
	}
	return s.db.Close()
}
