package queuetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// RunWorkflows runs the part of the suite that is about workflows, which not every store of a test keeps.
func RunWorkflows(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"rollback", testWorkflowRollback},
		{"list", testWorkflowList},
		{"taken", testWorkflowTaken},
		{"steps", testWorkflowSteps},
		{"outputs", testJobOutputs},
		{"failures", testJobFailures},
		{"cancel", testCancelStep},
		{"many at once", testWorkflowsAtOnce},
		{"reopen", testWorkflowReopen},
		{"delete", testWorkflowDelete},
		{"delete in pieces", testWorkflowDeletePieces},
		{"tidy", testWorkflowTidy},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, h)
		})
	}
}

// doing is a transition made of what it does.
type doing func(record.WorkflowTx) error

func (f doing) Apply(tx record.WorkflowTx, _ record.End) error { return f(tx) }
func (doing) Applied()                                         {}

// advance commits a transition, which must not fail.
func (s store) advance(f doing) record.OpResult {
	s.t.Helper()
	return s.must(&record.Advance{Transition: f})
}

// view looks at workflows as people do.
func (s store) view(f func(v record.WorkflowView) error) {
	s.t.Helper()
	if err := s.ViewWorkflows(s.t.Context(), f); err != nil {
		s.t.Fatal(err)
	}
}

// workflowOf is a workflow that has just started.
func workflowOf(id string) *record.WorkflowRecord {
	return &record.WorkflowRecord{ID: id, Name: "n", Definition: "hash", StartedAt: 5, Record: []byte{1}}
}

// stepJob is the job of a step.
func stepJob(w *record.WorkflowRecord, step string, mod ...func(*record.JobSpec)) *record.JobSpec {
	job := spec(w.ID+"."+step+".1", "w", mod...)
	job.Origin = &record.Origin{Workflow: w.Key, ID: w.ID, Step: step, Mark: "s0.1"}
	return job
}

// submitStep adds a job, which must not be refused.
func submitStep(tx record.WorkflowTx, job *record.JobSpec) error {
	refused, err := tx.SubmitStep(job)
	if refused != nil {
		return errors.Join(err, refused)
	}
	return err
}

// addWorkflow adds a workflow with a job.
func addWorkflow(tx record.WorkflowTx, w *record.WorkflowRecord) error {
	if added, err := tx.AddWorkflow(w, []byte("{}")); !added || err != nil {
		return errors.Join(err, errors.New("its id is taken"))
	}
	if err := submitStep(tx, stepJob(w, "a")); err != nil {
		return err
	}
	return errors.Join(tx.SaveStep(w.Key, &record.StepRecord{Status: jobhost.StepRunning, Number: 1, Tasks: 1}), tx.SetWorkflowData(w.Key, -1, []byte("1")))
}

// start adds a workflow with jobs, and returns it.
func (s store) start(id string, jobs func(w *record.WorkflowRecord) []*record.JobSpec) *record.WorkflowRecord {
	s.t.Helper()
	var added *record.WorkflowRecord
	s.advance(func(tx record.WorkflowTx) error {
		added = workflowOf(id)
		if ok, err := tx.AddWorkflow(added, []byte("{}")); !ok || err != nil {
			return errors.Join(err, errors.New("its id is taken"))
		}
		for _, job := range jobs(added) {
			if err := submitStep(tx, job); err != nil {
				return err
			}
		}
		return nil
	})
	return added
}

// A transition that fails leaves nothing behind, nor does the operation that it is a part of.
func testWorkflowRollback(t *testing.T, h Harness) {
	s := open(t, h)
	spoiled := errors.New("spoiled")
	var key record.Key
	for _, fails := range []bool{true, false} {
		_, err := commit(s.Store, &record.Advance{Transition: doing(func(tx record.WorkflowTx) error {
			w := workflowOf("wf-a")
			if err := addWorkflow(tx, w); err != nil {
				return err
			}
			key = w.Key
			if fails {
				return spoiled
			}
			return nil
		})})
		if fails != errors.Is(err, spoiled) {
			t.Fatal(err)
		}
		open, err := s.OpenWorkflows(t.Context())
		_, noJob := s.Job(t.Context(), "wf-a.a.1")
		if err != nil || len(open) == 0 != fails || noJob != nil != fails {
			t.Errorf("after a transition that fails is %v: %v, %v, %v", fails, open, noJob, err)
		}
	}
	s.view(func(v record.WorkflowView) error {
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
	job := s.job("wf-a.a.1")
	settle := &record.Settle{Key: job.Key, Status: record.Succeeded, Attempt: 1, EndedAt: 9, Transition: doing(func(record.WorkflowTx) error { return spoiled })}
	if _, err := commit(s.Store, settle); !errors.Is(err, spoiled) {
		t.Fatal(err)
	}
	if job = s.job(job.ID); job.Tasks[0].Status != record.Open {
		t.Errorf("a task whose settlement came to nothing: %+v", job.Tasks)
	}
}

func codeOf(refused *jobhost.Error) jobhost.Code {
	if refused == nil {
		return ""
	}
	return refused.Code
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Pages of a list go on where the one before ended, whatever is selected.
func testWorkflowList(t *testing.T, h Harness) {
	s := open(t, h)
	var all []record.WorkflowRecord
	s.advance(func(tx record.WorkflowTx) error {
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
			var got, want []string
			for i := range all {
				if tt.match(&all[i]) {
					want = append(want, all[i].ID)
				}
			}
			tt.query.Limit = 7
			for {
				page, err := s.Workflows(t.Context(), tt.query)
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

// Ids of workflows and of jobs that are taken are refused, also by what was added in the same commit.
func testWorkflowTaken(t *testing.T, h Harness) {
	s := open(t, h)
	s.submit(spec("wf-a.b.1", "w"))
	var codes []jobhost.Code
	for range 2 {
		s.advance(func(tx record.WorkflowTx) error {
			w := workflowOf("wf-a")
			there, err := tx.WorkflowByID(w.ID)
			if err != nil || there != nil {
				return err
			}
			if err := addWorkflow(tx, w); err != nil {
				return err
			}
			again := workflowOf("wf-a")
			if added, err := tx.AddWorkflow(again, []byte("{}")); added || err != nil {
				return fmt.Errorf("the id of a workflow was taken twice: %w", err)
			}
			codes = nil
			for _, step := range []string{"a", "b", "c"} {
				refused, err := tx.SubmitStep(stepJob(w, step))
				if err != nil {
					return err
				}
				codes = append(codes, codeOf(refused))
			}
			return nil
		})
	}
	wantSame(t, "what became of jobs", codes, []jobhost.Code{jobhost.CodeConflict, jobhost.CodeConflict, ""})
	if job := s.job("wf-a.b.1"); job.Origin != nil {
		t.Error("the job that was there is another one")
	}
	if page, err := s.Workflows(t.Context(), record.WorkflowQuery{Limit: 10}); err != nil || len(page) != 1 {
		t.Errorf("%v, %v", page, err)
	}
}
