package sqlitequeue_test

import (
	"errors"
	"fmt"
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

// A transition that fails leaves nothing behind, nor does the operation that it is a part of.
func TestWorkflowRollback(t *testing.T) {
	t.Parallel()
	store := open(t, sqlitequeue.Options{})
	spoiled := errors.New("spoiled")
	var key record.Key
	for _, fails := range []bool{true, false} {
		err := advance(t, store, func(tx record.WorkflowTx) error {
			w := &record.WorkflowRecord{ID: "wf-a", Name: "n", Definition: "hash", StartedAt: 5}
			if err := addWorkflow(tx, w); err != nil {
				return err
			}
			key = w.Key
			if fails {
				return spoiled
			}
			return nil
		})
		if fails != errors.Is(err, spoiled) {
			t.Fatal(err)
		}
		open, err := store.OpenWorkflows(t.Context())
		_, noJob := store.Job(t.Context(), "wf-a.a.1")
		if err != nil || len(open) == 0 != fails || noJob != nil != fails {
			t.Errorf("after a transition that fails is %v: %v, %v, %v", fails, open, noJob, err)
		}
	}
	err := store.ViewWorkflows(t.Context(), func(v record.WorkflowView) error {
		w, err := v.Workflow(key)
		if err != nil || w == nil || w.ID != "wf-a" || w.StartedAt != 5 {
			t.Errorf("%+v, %v", w, err)
		}
		for what, got := range map[string]any{"by id": must(v.WorkflowByID("wf-none")), "by key": must(v.Workflow(key + 99))} {
			if got != (*record.WorkflowRecord)(nil) {
				t.Errorf("%s there is %v", what, got)
			}
		}
		if data, err := v.WorkflowData(key, 7); data != nil || err != nil {
			t.Errorf("%q, %v", data, err)
		}
		steps, err := v.WorkflowSteps(key)
		if err != nil || len(steps) != 1 || steps[0].Number != 1 {
			t.Errorf("%v, %v", steps, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	job, err := store.Job(t.Context(), "wf-a.a.1")
	if err != nil {
		t.Fatal(err)
	}
	settle := &record.Settle{Key: job.Key, Status: record.Succeeded, Attempt: 1, EndedAt: 9, Transition: doing(func(record.WorkflowTx) error { return spoiled })}
	if _, err := commitAll(store, settle); !errors.Is(err, spoiled) {
		t.Fatal(err)
	}
	if job, err = store.Job(t.Context(), job.ID); err != nil || job.Tasks[0].Status != record.Open {
		t.Errorf("a task whose settlement came to nothing: %+v, %v", job.Tasks, err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Pages of a list go on where the one before ended, whatever is selected.
func TestWorkflowList(t *testing.T) {
	t.Parallel()
	store := open(t, sqlitequeue.Options{})
	var all []record.WorkflowRecord
	err := advance(t, store, func(tx record.WorkflowTx) error {
		all = nil
		for i := range 60 {
			w := record.WorkflowRecord{ID: fmt.Sprint("wf-", i), Name: fmt.Sprint("n", i%3), Definition: fmt.Sprint(i % 2), StartedAt: record.Millis(100 + i)}
			if i%5 == 4 {
				w.Parent, w.ParentID = all[0].Key, all[0].ID
			}
			if _, err := tx.AddWorkflow(&w, []byte("{}")); err != nil {
				return err
			}
			if w.Status = record.WorkflowStatus(i % 4); w.Status != record.WorkflowRunning {
				w.EndedAt = 500
			}
			if err := tx.SaveWorkflow(&w); err != nil {
				return err
			}
			all = append(all, w)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	failed := record.WorkflowFailed
	for name, tt := range map[string]struct {
		query record.WorkflowQuery
		match func(*record.WorkflowRecord) bool
	}{
		"all":      {record.WorkflowQuery{}, func(*record.WorkflowRecord) bool { return true }},
		"name":     {record.WorkflowQuery{Name: "n1"}, func(w *record.WorkflowRecord) bool { return w.Name == "n1" }},
		"status":   {record.WorkflowQuery{Status: &failed}, func(w *record.WorkflowRecord) bool { return w.Status == failed }},
		"parent":   {record.WorkflowQuery{Parent: "wf-0"}, func(w *record.WorkflowRecord) bool { return w.Parent != 0 }},
		"nobody's": {record.WorkflowQuery{Parent: "wf-none"}, func(*record.WorkflowRecord) bool { return false }},
		"time":     {record.WorkflowQuery{After: 110, Before: 130}, func(w *record.WorkflowRecord) bool { return w.StartedAt >= 110 && w.StartedAt < 130 }},
		"several": {record.WorkflowQuery{Name: "n0", Status: &failed, After: 110}, func(w *record.WorkflowRecord) bool {
			return w.Name == "n0" && w.Status == failed && w.StartedAt >= 110
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got, want []string
			for i := range all {
				if tt.match(&all[i]) {
					want = append(want, all[i].ID)
				}
			}
			tt.query.Limit = 7
			for {
				page, err := store.Workflows(t.Context(), tt.query)
				if err != nil {
					t.Fatal(err)
				}
				for i := range page {
					got = append(got, page[i].ID)
					tt.query.Below = page[i].Key
				}
				if len(page) < tt.query.Limit {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
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
