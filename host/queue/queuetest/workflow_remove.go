package queuetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// finished adds a workflow with 4 tasks that has ended, perhaps as a step of another.
func (s store) finished(id string, parent *record.WorkflowRecord, expires record.Millis) *record.WorkflowRecord {
	s.t.Helper()
	var w *record.WorkflowRecord
	var jobs []*record.JobSpec
	s.advance(func(tx record.WorkflowTx) error {
		w = workflowOf(id)
		if parent != nil {
			w.Parent, w.ParentID = parent.Key, parent.ID
		}
		if added, err := tx.AddWorkflow(w, []byte("{}")); !added || err != nil {
			return errors.Join(err, errors.New("its id is taken"))
		}
		jobs = []*record.JobSpec{stepJob(w, "a"), stepJob(w, "b", tasks(3))}
		for _, job := range jobs {
			if err := submitStep(tx, job); err != nil {
				return err
			}
		}
		return errors.Join(tx.SaveStep(w.Key, &record.StepRecord{Status: jobhost.StepCompleted}), tx.SetWorkflowData(w.Key, -1, []byte("1")))
	})
	for _, job := range jobs {
		for i := range job.Tasks {
			s.succeed(job.Key + record.Key(i))
		}
	}
	s.saveStatus(w.Key, record.WorkflowCompleted, expires)
	return w
}

func (s store) saveStatus(key record.Key, status record.WorkflowStatus, expires record.Millis) {
	s.t.Helper()
	s.advance(func(tx record.WorkflowTx) error {
		w, err := tx.Workflow(key)
		if err != nil {
			return err
		}
		w.Status, w.EndedAt, w.ExpiresAt = status, epoch+30, expires
		return tx.SaveWorkflow(w)
	})
}

// left fails the test unless these workflows are shown, and their jobs are all there are.
func (s store) left(want ...string) {
	s.t.Helper()
	page, err := s.Workflows(s.t.Context(), record.WorkflowQuery{Limit: 100})
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for i := range page {
		got = append(got, page[i].ID)
	}
	wantSame(s.t, "the workflows that are left", got, want)
	s.checkCounts()
}

// A workflow is removed with its jobs and with those that are its steps, but not while one of these runs.
func testWorkflowDelete(t *testing.T, h Harness) {
	s := open(t, h)
	top := s.finished("wf-a", nil, 0)
	child := s.finished("wf-a.sub.1", top, 0)
	s.finished("wf-a.sub.1.sub.1", child, 0)
	s.finished("wf-b", nil, 0)
	remove := func(id string) record.OpResult { return s.do(&record.DeleteWorkflow{ID: id, At: epoch, Limit: 100})[0] }

	wantCode(t, remove("wf-none").Err, jobhost.CodeNotFound)
	wantCode(t, remove(child.ID).Err, jobhost.CodeConflict)
	wantCode(t, s.do(&record.Delete{ID: "wf-a.a.1"})[0].Err, jobhost.CodeConflict)
	for _, key := range []record.Key{top.Key, child.Key} {
		s.saveStatus(key, record.WorkflowRunning, 0)
		wantCode(t, remove("wf-a").Err, jobhost.CodeConflict)
		s.saveStatus(key, record.WorkflowCompleted, 0)
	}
	s.left("wf-b", "wf-a.sub.1.sub.1", "wf-a.sub.1", "wf-a")

	revived := s.must(&record.Revive{ID: s.cancelled("wf-b"), At: epoch})
	res := remove("wf-b")
	if len(res.Dropped) != 1 || res.Dropped[0].Origin.ID != "wf-b" || len(res.Dropped[0].Tasks) != len(revived.Tasks) || res.Err != nil {
		t.Errorf("a job that was open is %+v, %v", res.Dropped, res.Err)
	}
	if res := remove("wf-a"); res.Err != nil || res.Next != 0 || res.Removed != 12 {
		t.Errorf("%+v", res)
	}
	s.left()
	s.finished("wf-a", nil, 0) // the ids are free again
	s.left("wf-a")
}

// cancelled adds a job to a workflow that was cancelled after its end.
func (s store) cancelled(id string) string {
	s.t.Helper()
	var job *record.JobSpec
	s.advance(func(tx record.WorkflowTx) error {
		w, err := tx.WorkflowByID(id)
		if w == nil || err != nil {
			return err
		}
		job = stepJob(w, "late", tasks(2))
		return submitStep(tx, job)
	})
	s.must(&record.Cancel{ID: job.ID, At: epoch})
	return job.ID
}

// A workflow that is removed in pieces isn't shown from the first one on, and its id is taken until the last.
func testWorkflowDeletePieces(t *testing.T, h Harness) {
	s := open(t, h)
	top := s.finished("wf-a", nil, 0)
	for i := range 3 {
		s.finished(fmt.Sprint("wf-a.sub.", i), top, 0)
	}
	for pieces := 1; ; pieces++ {
		res := s.must(&record.DeleteWorkflow{ID: "wf-a", At: epoch, Limit: 1})
		s.left()
		if res.Next == 0 {
			if pieces < 4 {
				t.Errorf("16 tasks were removed in %d pieces", pieces)
			}
			break
		}
		if res.Next != epoch || res.Removed > 3 {
			t.Errorf("%+v", res)
		}
		var added bool
		s.advance(func(tx record.WorkflowTx) error {
			if w, err := tx.WorkflowByID("wf-a"); w != nil || err != nil {
				return errors.Join(err, errors.New("it is shown"))
			}
			var err error
			added, err = tx.AddWorkflow(workflowOf("wf-a"), []byte("{}"))
			return err
		})
		if added {
			t.Fatal("its id is free")
		}
	}
	s.finished("wf-a", nil, 0)
	s.left("wf-a")
}

// Workflows are removed when their time is over, those that are steps with the one above, unless one still runs.
func testWorkflowTidy(t *testing.T, h Harness) {
	s := open(t, h)
	s.finished("wf-a", nil, epoch+100)
	b := s.finished("wf-b", nil, epoch+100)
	s.finished("wf-c", nil, epoch+500)
	s.finished("wf-d", nil, 0)
	child := s.finished("wf-b.sub.1", b, 0)
	s.saveStatus(child.Key, record.WorkflowRunning, 0)
	tidy := func(at record.Millis) (next record.Millis) {
		t.Helper()
		for {
			res := s.must(&record.Tidy{At: at, Limit: 5})
			if res.Next == 0 || res.Next > at {
				return res.Next
			}
		}
	}
	tidy(epoch + 99)
	s.left("wf-b.sub.1", "wf-d", "wf-c", "wf-b", "wf-a")
	if next := tidy(epoch + 100); next > epoch+500 || next == 0 {
		t.Errorf("the next look is at %d", next)
	}
	s.left("wf-b.sub.1", "wf-d", "wf-c", "wf-b")
	s.saveStatus(child.Key, record.WorkflowFailed, 0)
	tidy(epoch + 1_000_000)
	s.left("wf-d")
}
