package pgstate_test

import (
	"errors"
	"testing"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/state/statetest"
)

// change is one of another package in the same commit.
type change struct {
	apply func(tx *pgdb.Tx) error
	done  chan error
}

func (c *change) Size() (ops, bytes int)  { return 1, 0 }
func (c *change) Apply(tx *pgdb.Tx) error { return c.apply(tx) }
func (c *change) Done(err error)          { c.done <- err }

// change commits one and waits for it.
func (s *store) change(apply func(tx *pgdb.Tx) error) error {
	c := &change{apply, make(chan error, 1)}
	s.writer.Write(c)
	return <-c.done
}

var errSpoiled = errors.New("spoiled")

// TestHammer removes jobs while they are followed and written, as the queue does: behind a statement of its own.
func TestHammer(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	statetest.Removals{
		Store: s.Store,
		Spoil: func() { _ = s.change(func(*pgdb.Tx) error { return errSpoiled }) },
		Remove: func(id string, fail bool) error {
			return s.change(func(tx *pgdb.Tx) error {
				if tx.Direct() == nil {
					return nil
				}
				if err := s.Removing(tx, []string{"other", id}); err != nil || !fail {
					return err
				}
				return errSpoiled
			})
		},
		Orphans: func() int64 {
			return s.ask(t, "SELECT count(*) FROM jobhost.state WHERE job NOT IN (SELECT id FROM jobhost.state_job)")
		},
	}.Hammer(t)
}

// TestAny: a queue whose jobs have no states is told so.
func TestAny(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	if s.Any() {
		t.Error("an empty store may have something to remove")
	}
	src := follow(t, s, plain, 1, statetest.Watch())
	if !s.Any() {
		t.Error("a job that is followed may be removed")
	}
	set1(t, src, "x")
	s = s.reopen(t)
	if !s.Any() {
		t.Error("a job of an earlier term may be removed")
	}
	if err := s.Delete(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	if s.Any() {
		t.Error("after the last job is deleted there may be something to remove")
	}
}
