// Package pgstate keeps states of tasks in a PostgreSQL database that several hosts share, of which the one that leads
// uses the store. It implements [state.Store]; what that demands beyond rows (one host that writes, group commit, lost
// outcomes) is done by pgdb.
//
//	Set ─► change ─► pgdb: the writer's image, one message for all that waits ─► Done, in order ─► feeds, then the caller
//
// Versions are given out in the image, which knows the last write of each state that was looked at. In a database that
// it shares with the queue, states cost no commit of their own, and go with their job.
//
// Who follows which job, and what makes deletion safe, is in package follow: all changes go through the host that
// leads, so nothing has to be listened for.
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

// New returns the store of a term, in a database that was migrated with [Schemas] among its schemas. There may be one
// for a writer. Closing the store leaves database, term and writer as they are.
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

// Close implements [state.Store]. Writes that are under way are made.
func (s *Store) Close() error {
	s.lives.Close()
	return nil
}

// explainWrite says what a caller may do about a write that was not made.
func explainWrite(err error) error {
	if !errors.Is(err, pgdb.ErrTermOver) {
		return err
	}
	return &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "this host no longer leads", Hint: "try again: another host takes over", Cause: err}
}
