package sqlitequeue_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// doing is a transition made of what it does.
type doing func(record.WorkflowTx) error

func (f doing) Apply(tx record.WorkflowTx, _ record.End) error { return f(tx) }
func (doing) Applied()                                         {}

func advance(t *testing.T, store *sqlitequeue.Store, f doing) error {
	t.Helper()
	_, err := commitAll(store, &record.Advance{Transition: f})
	return err
}

// addWorkflow adds a workflow with a job, and returns its key.
func addWorkflow(tx record.WorkflowTx, w *record.WorkflowRecord) error {
	if added, err := tx.AddWorkflow(w, []byte("{}")); !added || err != nil {
		return errors.Join(err, errors.New("its id is taken"))
	}
	job := newSpec(w.ID+".a.1", "w", 1)
	job.Origin = &record.Origin{Workflow: w.Key, ID: w.ID, Step: "a", Mark: "s0.1"}
	if refused, err := tx.SubmitStep(job); refused != nil || err != nil {
		return errors.Join(err, errors.New("its job is there"))
	}
	return errors.Join(tx.SaveStep(w.Key, &record.StepRecord{Status: jobhost.StepRunning, Number: 1, Tasks: 1}), tx.SetWorkflowData(w.Key, -1, []byte("1")))
}

// A database from before there were workflows gets their tables, and keeps its jobs.
func TestWorkflowMigration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := slices.DeleteFunc(sqlitequeue.Schemas(), func(s sqlitedb.Schema) bool { return s.Name == "workflow" })
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Relaxed: true, Schemas: before})
	if err != nil {
		t.Fatal(err)
	}
	old, err := sqlitequeue.New(db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := commitAll(old, &record.Submit{Job: newSpec("old", "w", 1)}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	store := open(t, sqlitequeue.Options{Dir: dir, Relaxed: true})
	if _, err := store.Job(t.Context(), "old"); err != nil {
		t.Error(err)
	}
	w := &record.WorkflowRecord{ID: "wf-a", Name: "n", Definition: "hash"}
	if err := advance(t, store, func(tx record.WorkflowTx) error { return addWorkflow(tx, w) }); err != nil {
		t.Fatal(err)
	}
	if _, err := commitAll(store, &record.Tidy{At: 1 << 40, Limit: 10}, &record.Cancel{ID: "wf-a.a.1", At: 3}); err != nil {
		t.Error(err)
	}
}
