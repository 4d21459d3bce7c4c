package pgdb_test

import (
	"errors"
	"testing"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// several are changes of one commit.
type several struct {
	changes []pgdb.Change
	runs    int
	done    chan error
}

func (c *several) Size() (ops, bytes int) { return len(c.changes), 0 }

func (c *several) Apply(tx *pgdb.Tx) error {
	c.runs++
	for _, change := range c.changes {
		tx.Part()
		if err := change.Apply(tx); err != nil {
			return err
		}
	}
	return nil
}

func (c *several) Done(err error) { c.done <- err }

// TestDirect: a change that reads and writes by statements sees what came before it in its commit, and what comes
// after sees what it did; all come to nothing with one that fails.
func TestDirect(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	h := lead(t, open(t, server.URL(), server.Schema(t), "a"))
	run := func(fail error) (first, second, third int64, err error) {
		a, d, b := h.newAdd("x", 3), &double{*h.newAdd("x", 0)}, h.newAdd("x", 1)
		other := h.newAdd("y", 1)
		b.fail = fail
		all := &several{changes: []pgdb.Change{a, d, other, b}, done: make(chan error, 1)}
		h.writer.Write(all)
		err = <-all.done
		return a.sum, d.sum, b.sum, err
	}
	if a, d, b, err := run(nil); a != 3 || d != 6 || b != 7 || err != nil {
		t.Errorf("got %d, %d, %d, %v", a, d, b, err)
	}
	if a, d, b, err := run(nil); a != 10 || d != 20 || b != 21 || err != nil {
		t.Errorf("got %d, %d, %d, %v", a, d, b, err)
	}
	failed := errors.New("no")
	if _, _, _, err := run(failed); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if got := stored(t, h.db); got["x"] != 21 || got["y"] != 3 {
		t.Errorf("a commit that failed has left %v", got)
	}
	if sum, err := h.add("y", 1); sum != 4 || err != nil {
		t.Errorf("got %d, %v: the image has kept what came to nothing", sum, err)
	}
}
