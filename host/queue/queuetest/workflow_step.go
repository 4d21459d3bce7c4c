package queuetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// alike is wantSame for a transition, which must not end the goroutine that it runs on.
func alike(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s differ (-want +got):\n%s", what, diff)
	}
}

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
				alike(t, "steps", steps, want)
				f, err2 := v.StepFailure(w.Key, 3)
				alike(t, "failure", f, first)
				none, err3 := v.StepFailure(w.Key, 4)
				if none != nil {
					t.Errorf("%v", none)
				}
				return errors.Join(err, err2, err3)
			}
			if atOnce {
				s.advance(func(tx record.WorkflowTx) error {
					for i := range saves {
						if err := tx.SaveStep(w.Key, &saves[i]); err != nil {
							return err
						}
					}
					f, err := tx.StepFailure(w.Key, 3)
					if err == nil && (f == nil || f.Code != first.Code) {
						t.Errorf("%v", f)
					}
					return err
				})
			} else {
				for i := range saves {
					s.advance(func(tx record.WorkflowTx) error { return tx.SaveStep(w.Key, &saves[i]) })
				}
			}
			s.view(look)
			s.advance(func(tx record.WorkflowTx) error {
				steps, err := tx.WorkflowSteps(w.Key)
				if err == nil {
					alike(t, "steps of a transaction", steps, want)
				}
				return err
			})
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
	check := func(v record.WorkflowView) error {
		for _, tt := range []struct {
			id   string
			most int
			want *record.JobOutput
		}{
			{"wf-a.many.1", 100, &record.JobOutput{Results: [][]byte{[]byte("one"), {}, []byte("three")}, Tasks: 3, Size: 8}},
			{"wf-a.many.1", 7, &record.JobOutput{Tasks: 3, Size: 8}},
			{"wf-a.none.1", 0, &record.JobOutput{Results: [][]byte{{}}, Tasks: 1}},
			{"wf-a.away.1", 100, &record.JobOutput{Tasks: 1, Size: 1 << 20, Ref: "ref-of-a-result"}},
			{"wf-a.gone.1", 100, nil},
		} {
			out, err := v.JobOutput(tt.id, tt.most)
			if err != nil {
				return err
			}
			alike(t, "the output of "+tt.id, out, tt.want)
		}
		return nil
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
	last.Transition = doing(func(tx record.WorkflowTx) error { return check(tx) })
	s.must(last)
	s.view(check)
	s.view(func(v record.WorkflowView) error { // as somebody looks who has looked at the steps before
		w, err := v.WorkflowByID("wf-a")
		if err != nil {
			return err
		}
		if _, err := v.WorkflowSteps(w.Key); err != nil {
			return err
		}
		return check(v)
	})
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
		op.Transition = doing(func(tx record.WorkflowTx) error {
			f, err := tx.JobFailure("wf-a.many.1")
			switch {
			case err != nil:
				return err
			case f == nil && want != "" || f != nil && f.Code != want:
				t.Errorf("the failure is %+v, want %q", f, want)
			}
			f, err = tx.JobFailure("wf-a.fine.1")
			if f != nil {
				t.Errorf("the failure of what has not failed is %+v", f)
			}
			return err
		})
		s.must(op)
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
	alike(t, "the jobs that were cancelled", dropped, []string{
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
		alike(t, "the tasks of "+step, strings.Join(got, " "), want)
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
