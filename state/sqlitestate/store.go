// Package sqlitestate keeps states of tasks in an SQLite database that one process
// owns. It implements [state.Store].
//
//	Set ─► change ─► sqlitedb: one transaction for all that waits, one sync ─► Done, in order ─► feeds, then the caller
//
// Versions are given out in the transaction. In a database that it shares with
// the queue, states cost no sync of their own, and go with their job.
//
// Who follows which job, and what makes deletion safe, is in package follow.
package sqlitestate

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/follow"
)

// Options say what to open.
type Options = sqlitedb.StoreOptions

// Store is a [state.Store]. Its methods may be called from many goroutines.
type Store struct {
	db     *sqlitedb.DB
	owned  bool // Close closes db
	lives  *follow.Lives
	ledger *ledger
}

var _ state.Store = (*Store)(nil)

// Open opens the database of a directory, creating or migrating it if need be.
// Its errors are those of [sqlitedb.Open].
func Open(opts Options) (*Store, error) {
	s, err := sqlitedb.OpenStore(opts, Schemas(), New)
	if err != nil {
		return nil, err
	}
	s.owned = true
	return s, nil
}

// New returns a store in a database that was opened with [Schemas] among its
// schemas and may hold other packages' tables too. There may be one for a
// database. Closing the store leaves the database open.
func New(db *sqlitedb.DB) (*Store, error) {
	s := &Store{db: db, lives: follow.New(db.Err), ledger: &ledger{}}
	if err := db.Read(context.Background(), func(r *sqlitedb.Reader) error { return s.ledger.load(r, s.lives) }); err != nil {
		return nil, fmt.Errorf("open states: %w", err)
	}
	return s, nil
}

// Failed is closed when the store has stopped after an I/O error.
func (s *Store) Failed() <-chan struct{} { return s.db.Failed() }

// Err returns the error that stopped the store, or nil.
func (s *Store) Err() error { return s.db.Err() }

// Close implements [state.Store]. Writes that are under way are made.
func (s *Store) Close() error {
	s.lives.Close()
	if !s.owned {
		return nil
	}
	return s.db.Close()
}
