// Package pgstate keeps states of tasks in a PostgreSQL database that several hosts share; the leader uses the store. It
// implements [state.Store]. What that demands beyond rows (a single writer, group commit, finding out lost outcomes) is in
// package pgdb.
//
//	Set ─► change ─► pgdb: the writer's image, one message for all that waits ─► Done, in order ─► feeds, then the caller
//
// Versions are assigned in the image, which has the last write of each state that was written to. States share the writer of
// the queue: they cost no commit of their own, and are removed in the commit that removes their job.
//
// Which watcher follows which job, and what makes deletion safe, is in package follow. All changes go through the leader, so
// there is no need for LISTEN and NOTIFY.
package pgstate

import (
	"context"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/follow"
)

// Store is a [state.Store]. Its methods may be called from many goroutines.
type Store struct {
	db     *pgdb.DB
	term   *pgdb.Term
	writer *pgdb.Writer
	lives  *follow.Lives
	image  *image
}

var _ state.Store = (*Store)(nil)

// New returns the store of a term, in a database that was migrated with [Schemas]. A writer may have one such store. Closing
// it leaves database, term and writer open.
func New(ctx context.Context, db *pgdb.DB, term *pgdb.Term, writer *pgdb.Writer) (*Store, error) {
	s := &Store{db: db, term: term, writer: writer, lives: follow.New(term.Err), image: newImage(db)}
	err := db.ReadLong(ctx, func(r *pgdb.Session) error {
		var rows, greatest, latest int64
		_, err := r.One([]any{&rows, &greatest, &latest}, "SELECT count(*), coalesce(max(id), 0), coalesce(max(changed_at), 0) FROM jobhost.state_job")
		s.image.Ledger = follow.NewLedger(s.lives, term.Now, rows, greatest, latest)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open states: %w", err)
	}
	return s, nil
}

// Failed is closed when the term is over.
func (s *Store) Failed() <-chan struct{} { return s.term.Done() }

// Err returns why the term is over, nil = it is not.
func (s *Store) Err() error { return s.term.Err() }

// Close implements [state.Store]. Writes under way are still made.
func (s *Store) Close() error {
	s.lives.Close()
	return nil
}

// explainWrite adds to the error of a write what a caller can do.
func explainWrite(err error) error {
	if !errors.Is(err, pgdb.ErrTermOver) {
		return err
	}
	return &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "this host no longer leads", Hint: "try again: another host takes over", Cause: err}
}
