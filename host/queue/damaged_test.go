package queue_test

import (
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// change is a statement that is run without the queue; it is a [sqlitedb.Change].
type change struct {
	sql  string
	done chan error
}

func (*change) Ops() int                      { return 1 }
func (c *change) Apply(tx *sqlitedb.Tx) error { return tx.Stmt(c.sql).Exec() }
func (c *change) Done(err error)              { c.done <- err }

// A queue opens with damaged jobs, whichever they are. They die, and the others run.
func TestOpenWithDamagedJobs(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"the newest": "UPDATE job SET options='{}' WHERE id='b'",
		"all":        "UPDATE job SET options='{}', labels='[]'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := sqlitedb.Open(sqlitedb.Options{Schemas: sqlitequeue.Schemas()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			store, err := sqlitequeue.New(db)
			if err != nil {
				t.Fatal(err)
			}
			f := reopen(t, store)
			f.submit(jobhost.Spec{ID: "a"})
			f.submit(jobhost.Spec{ID: "b"})
			if err := f.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			c := &change{sql, make(chan error, 1)}
			db.Write(c)
			if err := <-c.done; err != nil {
				t.Fatal(err)
			}
			f = reopen(t, store)
			if _, err := f.Job(t.Context(), "b"); jobhost.CodeOf(err) != jobhost.CodeDamaged {
				t.Errorf("the damaged job: %v", err)
			}
			if name == "all" {
				return
			}
			if lease := f.take(f.Slot("w")); lease.Job.ID != "a" {
				t.Errorf("took %s", lease.Job.ID)
			}
			if _, _, err := store.Dead(t.Context(), record.DeadQuery{Limit: 1}); err != nil {
				t.Error(err)
			}
		})
	}
}
