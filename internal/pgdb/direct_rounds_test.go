package pgdb_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// tableDouble doubles all numbers by a statement.
type tableDouble struct {
	table *table
	done  chan error
}

func (d *tableDouble) Size() (ops, bytes int) { return 1, 0 }

func (d *tableDouble) Apply(tx *pgdb.Tx) error {
	tx.Join(d.table)
	s := tx.Direct()
	if s == nil {
		return nil
	}
	_, err := s.Exec("UPDATE jobhost.sums SET n=n*2")
	return err
}

func (d *tableDouble) Done(err error) { d.done <- err }

// busy keeps the writer busy until it is released, so that what is written meanwhile comes into one commit.
type busy struct {
	once           sync.Once
	begun, release chan struct{}
}

func (c *busy) Size() (ops, bytes int) { return 1, 0 }

func (c *busy) Apply(*pgdb.Tx) error {
	c.once.Do(func() { close(c.begun) })
	<-c.release
	return nil
}

func (c *busy) Done(error) { c.once.Do(func() { close(c.begun) }) }

// together lets changes come into one commit.
func (h *host) together(changes ...pgdb.Change) {
	b := &busy{begun: make(chan struct{}), release: make(chan struct{})}
	h.writer.Write(b)
	<-b.begun
	for _, c := range changes {
		h.writer.Write(c)
	}
	close(b.release)
}

// TestDirectAmongOthers: changes by statements don't make what comes after them in their commit read its rows one by
// one, be they parts of one change or changes of their own.
func TestDirectAmongOthers(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprint("apart ", apart), func(t *testing.T) {
			t.Parallel()
			proxy := postgres.NewProxy(t, server.Address())
			h := lead(t, open(t, server.URLAt(proxy.Port()), server.Schema(t), "a"))
			rows := newTable(h.db)
			var changes []pgdb.Change
			done := make(chan error, 300)
			const each = 50
			for part := range 4 {
				for i := range each {
					// Each looks at a row of its own and at one that all look at.
					changes = append(changes, &walk{table: rows, keys: []string{fmt.Sprint("own ", part, " ", i), "all"}, done: done})
				}
				if part < 3 {
					changes = append(changes, &tableDouble{rows, done})
				}
			}
			run := func() {
				if !apart {
					all := &several{changes: changes, done: done}
					h.writer.Write(all)
					if err := <-done; err != nil {
						t.Error(err)
					}
					return
				}
				h.together(changes...)
				for range changes {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
			}
			run() // the statements are prepared
			got := stored(t, h.db)
			if want := int64((((each*2)+each)*2+each)*2 + each); got["all"] != want || got["own 0 7"] != 8 || got["own 3 7"] != 1 {
				t.Errorf("all is %d, want %d; own 0 7 is %d, own 3 7 %d", got["all"], want, got["own 0 7"], got["own 3 7"])
			}
			for range 2 {
				if trips := proxy.RoundTrips(run); trips > 30 {
					t.Errorf("%d changes, 3 of which are statements, took %d round trips", len(changes), trips)
				}
				all := &several{done: done} // now the image knows all rows beforehand
				for _, c := range changes {
					if w, ok := c.(*walk); ok {
						all.changes = append(all.changes, w)
					}
				}
				h.writer.Write(all)
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		})
	}
}
