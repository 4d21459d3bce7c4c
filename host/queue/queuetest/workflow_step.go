package queuetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// What is saved of steps is put together, whether it was saved in one commit or in several.
func testWorkflowSteps(t *testing.T, h Harness) {
	first := &jobhost.Failure{Code: "first", Message: "it failed"}
	saves := []record.StepRecord{
		{Step: 3, Status: jobhost.StepRunning, Number: 1, Tasks: 5, StartedAt: 10},
		{Step: 3, Status: jobhost.StepRunning, Number: 1, StartedAt: 11, Reason: "why \x00 not \xff", Failure: first},
		{Step: 3, Status: jobhost.StepRunning, Number: 2, Fallback: true, StartedAt: 12},
		{Step: 3, Status: jobhost.StepCompleted, Number: 2, Fallback: true, Worker: true, StartedAt: 13, EndedAt: 13},
		{Step: 4, Status: jobhost.StepSkipped},
	}
	want := []record.StepRecord{
		{Step: 3, Status: jobhost.StepCompleted, Number: 2, Fallback: true, Worker: true, StartedAt: 12, EndedAt: 13, Failure: first},
		{Step: 4, Status: jobhost.StepSkipped},
	}
	for _, atOnce := range []bool{true, false} {
		t.Run(fmt.Sprint("at once ", atOnce), func(t *testing.T) {
			s := open(t, h)
			w := s.start("wf-a", func(*record.WorkflowRecord) []*record.JobSpec { return nil })
			look := func(v record.WorkflowView) error {
				steps, err := v.WorkflowSteps(w.Key)
				wantSame(t, "steps", steps, want)
				f, err2 := v.StepFailure(w.Key, 3)
				wantSame(t, "failure", f, first)
				none, err3 := v.StepFailure(w.Key, 4)
				if none != nil {
					t.Errorf("%v", none)
				}
				return errors.Join(err, err2, err3)
			}
			if atOnce {
				var f *jobhost.Failure
				s.advance(func(tx record.WorkflowTx) error {
					for i := range saves {
						if err := tx.SaveStep(w.Key, &saves[i]); err != nil {
							return err
						}
					}
					var err error
					f, err = tx.StepFailure(w.Key, 3)
					return err
				})
				wantSame(t, "the failure within the transaction", f, first)
			} else {
				for i := range saves {
					s.advance(func(tx record.WorkflowTx) error { return tx.SaveStep(w.Key, &saves[i]) })
				}
			}
			s.view(look)
			var steps []record.StepRecord
			s.advance(func(tx record.WorkflowTx) (err error) {
				steps, err = tx.WorkflowSteps(w.Key)
				return err
			})
			wantSame(t, "steps of a transaction", steps, want)
		})
	}
}

// A transition sees what a job has returned, also what the operation that it comes with has settled.
func testJobOutputs(t *testing.T, h Harness) {
	s := open(t, h)
	var keys []record.Key
	s.start("wf-a", func(w *record.WorkflowRecord) []*record.JobSpec {
		return []*record.JobSpec{stepJob(w, "many", tasks(3)), stepJob(w, "none"), stepJob(w, "away")}
	})
	for _, step := range []string{"many", "none", "away"} {
		keys = append(keys, s.job("wf-a."+step+".1").Key)
	}
	many, none, away := keys[0], keys[1], keys[2]
	asked := []struct {
		id   string
		most int
		want *record.JobOutput
	}{
		{"wf-a.many.1", 100, &record.JobOutput{Results: [][]byte{[]byte("one"), {}, []byte("three")}, Tasks: 3, Size: 8}},
		{"wf-a.many.1", 7, &record.JobOutput{Tasks: 3, Size: 8}},
		{"wf-a.none.1", 0, &record.JobOutput{Results: [][]byte{{}}, Tasks: 1}},
		{"wf-a.away.1", 100, &record.JobOutput{Tasks: 1, Size: 1 << 20, Ref: "ref-of-a-result"}},
		{"wf-a.gone.1", 100, nil},
	}
	var got []*record.JobOutput
	look := func(v record.WorkflowView) error {
		got = nil
		for _, a := range asked {
			out, err := v.JobOutput(a.id, a.most)
			if err != nil {
				return err
			}
			got = append(got, out)
		}
		return nil
	}
	check := func() {
		t.Helper()
		for i, a := range asked {
			wantSame(t, "the output of "+a.id, got[i], a.want)
		}
	}
	result := func(key record.Key, data string) *record.Settle {
		op := settlement(key, record.Succeeded)
		op.Result = []byte(data)
		return op
	}
	s.must(result(many+2, "three"))
	elsewhere := settlement(away, record.Succeeded)
	elsewhere.ResultRef, elsewhere.ResultSize = "ref-of-a-result", 1<<20
	s.do(elsewhere, result(none, ""), result(many+1, ""))
	last := result(many, "one")
	last.Transition = doing(func(tx record.WorkflowTx) error { return look(tx) })
	s.must(last)
	check()
	s.view(look)
	check()
	s.view(func(v record.WorkflowView) error { // with the steps looked at before
		w, err := v.WorkflowByID("wf-a")
		if err != nil {
			return err
		}
		if _, err := v.WorkflowSteps(w.Key); err != nil {
			return err
		}
		return look(v)
	})
	check()
}

// A transition sees the last failure of the first dead task.
func testJobFailures(t *testing.T, h Harness) {
	s := open(t, h)
	s.start("wf-a", func(w *record.WorkflowRecord) []*record.JobSpec {
		return []*record.JobSpec{stepJob(w, "many", tasks(3)), stepJob(w, "fine")}
	})
	key := s.job("wf-a.many.1").Key
	fail := func(key record.Key, token int64, status record.Status, code string) *record.Settle {
		op := settlement(key, status)
		op.Token = token
		if code != "" {
			op.Failure = &jobhost.Failure{Code: code}
		}
		return op
	}
	sees := func(op *record.Settle, want string) {
		t.Helper()
		var f, fine *jobhost.Failure
		op.Transition = doing(func(tx record.WorkflowTx) (err error) {
			if f, err = tx.JobFailure("wf-a.many.1"); err != nil {
				return err
			}
			fine, err = tx.JobFailure("wf-a.fine.1")
			return err
		})
		s.must(op)
		if f == nil && want != "" || f != nil && f.Code != want {
			t.Errorf("the failure is %+v, want %q", f, want)
		}
		if fine != nil {
			t.Errorf("the failure of what has not failed is %+v", fine)
		}
	}
	sees(fail(key+1, 0, record.Open, "tried"), "")
	sees(fail(key+2, 0, record.Dead, "third"), "third")
	sees(fail(key+1, 1, record.Dead, ""), "tried")
	sees(fail(key, 0, record.Dead, "first"), "first")
	s.view(func(v record.WorkflowView) error {
		f, err := v.JobFailure("wf-a.many.1")
		if f == nil || f.Code != "first" {
			t.Errorf("%+v", f)
		}
		return err
	})
}

// Only a workflow's own jobs are cancelled, and its lanes learn of those that it has not submitted in the same
// transition.
func testCancelStep(t *testing.T, h Harness) {
	s := open(t, h)
	s.submit(spec("wf-a.foreign.1", "w"))
	w := s.start("wf-a", func(w *record.WorkflowRecord) []*record.JobSpec {
		return []*record.JobSpec{stepJob(w, "one"), stepJob(w, "many", tasks(3)), stepJob(w, "done"), stepJob(w, "last")}
	})
	s.succeed(s.job("wf-a.done.1").Key)
	s.succeed(s.job("wf-a.many.1").Key + 1)
	res := s.advance(func(tx record.WorkflowTx) error {
		if err := submitStep(tx, stepJob(w, "new")); err != nil {
			return err
		}
		for _, step := range []string{"one", "many", "done", "foreign", "new", "gone", "one"} {
			origin := &record.Origin{Workflow: w.Key, ID: w.ID, Step: step}
			if err := tx.CancelStep("wf-a."+step+".1", origin, 77, 99); err != nil {
				return err
			}
		}
		row, err := tx.Workflow(w.Key)
		if err != nil {
			return err
		}
		row.Record = []byte("later")
		return errors.Join(submitStep(tx, stepJob(w, "after")), tx.SaveWorkflow(row))
	})
	var dropped []string
	for _, d := range res.Dropped {
		dropped = append(dropped, fmt.Sprint(d.ID, " ", d.Origin.Step, " ", d.Worker, " ", len(d.Tasks), " ", d.Final, " ", d.JobEnded))
	}
	wantSame(t, "the jobs that were cancelled", dropped, []string{
		"wf-a.one.1 one w 1 [0 0 0 1] true", "wf-a.many.1 many w 2 [0 1 0 2] true",
	})
	if len(res.Then) != 1 || res.Then[0].ID != "wf-a.after.1" {
		t.Errorf("lanes learn of %v", res.Then)
	}
	for step, want := range map[string]string{"one": "3", "many": "3 1 3", "done": "1", "foreign": "0", "new": "3", "last": "0", "after": "0"} {
		job := s.job("wf-a." + step + ".1")
		var got []string
		for _, task := range job.Tasks {
			got = append(got, fmt.Sprint(uint8(task.Status)))
			if task.Status == record.Cancelled && task.EndedAt != 77 {
				t.Errorf("step %s: %+v", step, task)
			}
		}
		wantSame(t, "the tasks of "+step, strings.Join(got, " "), want)
	}
	wantFenced(t, s.do(settlement(s.job("wf-a.one.1").Key, record.Succeeded))[0])
	s.view(func(v record.WorkflowView) error {
		row, err := v.Workflow(w.Key)
		if err == nil && string(row.Record) != "later" {
			t.Errorf("%+v", row)
		}
		return err
	})
	s.checkCounts()
}
