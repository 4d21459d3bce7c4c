// Package sqlitestate keeps states of tasks in an SQLite database that one process
// owns. It implements [state.Store].
//
//	Set ─► change ─► sqlitedb: one transaction for all that waits, one sync ─► Done, in order ─► feeds, then the caller
//	Open ─► the feed joins the life ─► rows in a snapshot ─► feed
//
// Versions are given out in the transaction. In a database that it shares with
// the queue, states cost no sync of their own, and go with their job.
//
// What makes deletion safe is the [life]: see there.
package sqlitestate

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state"
)

// Options say what to open.
type Options = sqlitedb.StoreOptions

// Store is a [state.Store]. Its methods may be called from many goroutines.
type Store struct {
	db     *sqlitedb.DB
	owned  bool // Close closes db
	ledger *ledger
	prefix string // of the events' names
	events atomic.Uint64

	mu     sync.Mutex // protects lives, all their users, and closed
	lives  map[string]map[string]*life
	closed bool
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
	s := &Store{db: db, prefix: rand.Text()[:16] + "-", lives: map[string]map[string]*life{}}
	s.ledger = &ledger{store: s}
	if err := db.Read(context.Background(), func(r *sqlitedb.Reader) error { return s.ledger.load(r) }); err != nil {
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
	for _, l := range s.shut() {
		l.end(state.ErrClosed)
	}
	if !s.owned {
		return nil
	}
	return s.db.Close()
}

// shut refuses further users, and returns the lives that there are.
func (s *Store) shut() (all []*life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, runs := range s.lives {
		for _, l := range runs {
			all = append(all, l)
		}
	}
	return all
}

// explain returns the error of a read or write: after Close that is what it says.
func (s *Store) explain(doing string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && s.db.Err() == nil {
		return state.ErrClosed
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// eventID names a write that has no name.
func (s *Store) eventID() string { return s.prefix + strconv.FormatUint(s.events.Add(1), 36) }

// timeOf returns a time as it is stored; 0 = none.
func timeOf(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
