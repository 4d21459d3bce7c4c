// Package pgqueue keeps jobs in a PostgreSQL database that several hosts share, of which the one that leads uses the
// store. It implements [record.Store]; what that demands beyond rows (one host that writes, group commit, lost
// outcomes) is done by pgdb.
//
// Most operations are made in memory, in an image of the rows that they look at, and written in sets: a statement for
// each would cost three times as much. Those that are rare and look at rows which nobody has named, a cancel or a
// tidy, are statements in the same transaction. Each file has the operations of one subject, and its part of the image.
package pgqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// Store is a [record.Store]. Its methods may be called from many goroutines.
type Store struct {
	db     *pgdb.DB
	term   *pgdb.Term
	writer *pgdb.Writer
	image  *image
	inbox  inboxCursor
}

var (
	_ record.Leased = (*Store)(nil)
	_ record.Inbox  = (*Store)(nil)
	_ record.Roomy  = (*Store)(nil)
)

// Companion keeps something of jobs in tables of its own, in the same database.
type Companion = record.Companion[*pgdb.Tx]

// New returns the store of a term, in a database that was migrated with [Schemas] among its schemas. Closing the store
// leaves database, term and writer as they are.
func New(ctx context.Context, db *pgdb.DB, term *pgdb.Term, writer *pgdb.Writer, companions ...Companion) (*Store, error) {
	im := newImage(db)
	im.companions = companions
	if err := db.Read(ctx, im.load); err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	return &Store{db: db, term: term, writer: writer, image: im}, nil
}

// Now implements [record.Store]: it is the database's time.
func (s *Store) Now() time.Time { return s.term.Now() }

// Failed implements [record.Store]: it is closed when the term is over.
func (s *Store) Failed() <-chan struct{} { return s.term.Done() }

// Err implements [record.Store].
func (s *Store) Err() error { return s.term.Err() }

// Holding implements [record.Leased].
func (s *Store) Holding() bool { return s.term.Holding() }

// Full implements [record.Roomy].
func (s *Store) Full() error { return s.writer.Full() }

// Flowing implements [record.Roomy].
func (s *Store) Flowing() <-chan struct{} { return s.writer.Flowing() }

// GiveUp implements [record.Roomy].
func (s *Store) GiveUp() { s.writer.GiveUp() }

// Close implements [record.Store].
func (s *Store) Close() error { return nil }

// Accompanied implements [record.Accompanied].
func (s *Store) Accompanied(by any) bool {
	for _, c := range s.image.companions {
		if c == by {
			return true
		}
	}
	return false
}
