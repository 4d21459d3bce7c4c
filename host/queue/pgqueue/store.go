// Package pgqueue keeps jobs in a PostgreSQL database that several hosts share; the leader uses the store. It implements
// [record.Store]. What that demands beyond rows (a single writer, group commit, finding out lost outcomes) is in package pgdb.
//
//	Commit ─► batch ─► applyOp ─┬─ in the image: rows in memory, read by key, and written in sets with the commit
//	                            └─ applyDirect: statements, in the same transaction
//
// Frequent operations work on the image, since a statement for each would cost three times as much. Rare ones that search
// for rows, such as a cancel or a tidy, are statements: see [pgdb.Tx.Direct].
//
// Each file has the operations of one subject. Beside its operations a subject may have its part of the image (kv_rows.go; or
// in the same file), and its reads (kv_read.go). Where to look:
//
//	all of them  batch.go (what Commit does), image.go, ledger.go (keys, workers' numbers, sums), schema.go, stored.go
//	             (how rows and texts are stored)
//	jobs         submit.go, unique.go, effects.go (children), inbox.go (submits by SQL), object.go; claim.go, settle.go,
//	             control.go (cancel, revive)
//	removal      remove.go, tidy.go, dead.go, evict.go (the oldest dead letters), rewind.go (a clock that was ahead)
//	lists        list.go, page.go and search.go (which jobs), read.go (one job), result.go
//	the rest     kv.go, schedule.go, note.go, states.go, workflow*.go, import.go (for jobhost migrate --from)
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

// Companion keeps something about jobs in tables of its own in the same database, such as their states.
type Companion = record.Companion[*pgdb.Tx]

// New returns the store of a term, in a database that was migrated with [Schemas]. Closing the store leaves database, term
// and writer open.
func New(ctx context.Context, db *pgdb.DB, term *pgdb.Term, writer *pgdb.Writer, companions ...Companion) (*Store, error) {
	im := newImage(db)
	im.companions = companions
	if err := db.ReadLong(ctx, im.load); err != nil {
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
