package pgqueue_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// aimed is a transition that tells which workflow it is about, and counts how often it was applied.
type aimed struct {
	aim  record.Key
	runs int
	f    func(record.WorkflowTx) error
}

func (a *aimed) Apply(tx record.WorkflowTx, _ record.End) error {
	a.runs++
	return a.f(tx)
}
func (*aimed) Applied()          {}
func (a *aimed) Aim() record.Key { return a.aim }

// TestTransitionRounds: a transition that looks at much finds it in one round of reading, or two after a restart, since it
// goes on with guesses until it has asked for all.
func TestTransitionRounds(t *testing.T) {
	t.Parallel()
	const steps = 40
	s := open(t, postgres.Shared(t).Schema(t))
	w := &record.WorkflowRecord{ID: "wf-a", Name: "n", Definition: "hash", StartedAt: 5}
	begin := &aimed{f: func(tx record.WorkflowTx) error {
		if there, err := tx.WorkflowByID(w.ID); there != nil || err != nil {
			return err
		}
		if added, err := tx.AddWorkflow(w, []byte("{}")); !added || err != nil {
			return errors.Join(err, errors.New("its id is taken"))
		}
		for i := range steps {
			job := newSpec(fmt.Sprint("wf-a.s", i, ".1"), "w")
			job.Origin = &record.Origin{Workflow: w.Key, ID: w.ID, Step: fmt.Sprint("s", i)}
			if refused, err := tx.SubmitStep(job); refused != nil || err != nil {
				return errors.Join(err, errors.New("its job is there"))
			}
			if err := tx.SetWorkflowData(w.Key, i, fmt.Append(nil, "data ", i)); err != nil {
				return err
			}
		}
		return nil
	}}
	jobs := must(t, s, &record.Advance{Transition: begin})[0].Then
	if len(jobs) != steps || begin.runs != 2 {
		t.Errorf("%d jobs were added in %d runs", len(jobs), begin.runs)
	}
	for _, job := range jobs[1:] {
		must(t, s, &record.Settle{Key: job.Key, Status: record.Succeeded, Attempt: 1, EndedAt: 9, Result: []byte(job.ID)})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, s.schema)
	var got []string
	ended := &aimed{aim: w.Key, f: func(tx record.WorkflowTx) error {
		got = nil
		row, err := tx.Workflow(w.Key)
		if row == nil || err != nil {
			return errors.Join(err, errors.New("it is gone"))
		}
		for i := range steps {
			out, err := tx.JobOutput(fmt.Sprint("wf-a.s", i, ".1"), 1000)
			if err != nil {
				return err
			}
			data, err := tx.WorkflowData(w.Key, i)
			if err != nil {
				return err
			}
			got = append(got, fmt.Sprintf("%s %s", out.Results[0], data))
		}
		job := newSpec("wf-a.last.1", "w")
		job.Origin = &record.Origin{Workflow: w.Key, ID: w.ID, Step: "last"}
		refused, err := tx.SubmitStep(job)
		if refused != nil {
			return refused
		}
		return errors.Join(err, tx.SaveStep(w.Key, &record.StepRecord{Status: jobhost.StepCompleted}), tx.SaveWorkflow(row))
	}}
	must(t, s, &record.Settle{Key: jobs[0].Key, Status: record.Succeeded, Attempt: 1, EndedAt: 9, Result: []byte(jobs[0].ID), Transition: ended})
	for i := range got {
		if want := fmt.Sprint("wf-a.s", i, ".1 data ", i); got[i] != want {
			t.Errorf("got %q, want %q", got[i], want)
		}
	}
	if ended.runs != 2 {
		t.Errorf("the transition was applied %d times, want once to ask and once to go on", ended.runs)
	}
}

// TestRoundsOfShow: what is shown of a workflow with many workflows as steps is read in sets.
func TestRoundsOfShow(t *testing.T) {
	t.Parallel()
	const steps = 200
	s, proxy := openCounted(t)
	root := &record.WorkflowRecord{ID: "wf-a", Name: "n", Definition: "hash", StartedAt: 5, Record: []byte("root")}
	must(t, s, &record.Advance{Transition: &aimed{f: func(tx record.WorkflowTx) error {
		if _, err := tx.AddWorkflow(root, []byte("{}")); err != nil {
			return err
		}
		for i := range steps {
			w := &record.WorkflowRecord{
				ID: fmt.Sprint("wf-a.s", i), Name: "n", Definition: "hash", StartedAt: 5, Parent: root.Key, ParentID: root.ID, Record: fmt.Append(nil, "record ", i),
			}
			if _, err := tx.AddWorkflow(w, []byte("{}")); err != nil {
				return err
			}
			if err := tx.SetWorkflowData(w.Key, -2, fmt.Append(nil, "output ", i)); err != nil {
				return err
			}
			if err := tx.SaveStep(root.Key, &record.StepRecord{Step: i, Status: jobhost.StepCompleted}); err != nil {
				return err
			}
		}
		return nil
	}}})
	show := func(v record.WorkflowView) error {
		if steps, err := v.WorkflowSteps(root.Key); err != nil || len(steps) == 0 {
			return errors.Join(err, errors.New("there are no steps"))
		}
		for i := range steps {
			w, err := v.WorkflowByID(fmt.Sprint("wf-a.s", i))
			if w == nil || err != nil || string(w.Record) != fmt.Sprint("record ", i) || w.ParentID != root.ID {
				return fmt.Errorf("step %d: %+v, %w", i, w, err)
			}
			data, err := v.WorkflowData(w.Key, -2)
			if err != nil || string(data) != fmt.Sprint("output ", i) {
				return fmt.Errorf("step %d: %q, %w", i, data, err)
			}
		}
		if w, err := v.WorkflowByID(root.ID); w == nil || err != nil || string(w.Record) != "root" {
			return fmt.Errorf("%+v, %w", w, err)
		}
		w, err := v.WorkflowByID("wf-none")
		if w != nil {
			err = fmt.Errorf("there is %+v", w)
		}
		return err
	}
	for _, limit := range []int64{1 << 40, 15} { // the statements are prepared in the first round
		trips := proxy.RoundTrips(func() {
			if err := s.ViewWorkflows(t.Context(), show); err != nil {
				t.Error(err)
			}
		})
		if trips > limit {
			t.Errorf("it took %d round trips", trips)
		}
	}
}
