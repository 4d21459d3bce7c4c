package queuetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// chain lets workflows go from step to step, each when the one before ends.
type chain struct{ steps int }

// start is the transition with which a workflow begins.
func (c chain) start(id string) doing {
	return func(tx record.WorkflowTx) error {
		there, err := tx.WorkflowByID(id)
		if there != nil || err != nil {
			return err
		}
		w := workflowOf(id)
		if added, err := tx.AddWorkflow(w, []byte("{}")); !added || err != nil {
			return errors.Join(err, errors.New("its id is taken"))
		}
		if err := tx.SetWorkflowData(w.Key, -1, []byte("input of "+id)); err != nil {
			return err
		}
		return c.step(tx, w, 0)
	}
}

// step begins a step, which depends on all that was kept of the workflow.
func (c chain) step(tx record.WorkflowTx, w *record.WorkflowRecord, i int) error {
	input, err := tx.WorkflowData(w.Key, -1)
	if err != nil {
		return err
	}
	job := stepJob(w, fmt.Sprint("s", i))
	job.Payload = fmt.Append(nil, string(input), " ", string(w.Record))
	if err := submitStep(tx, job); err != nil {
		return err
	}
	w.Record = fmt.Append(nil, i+1)
	return errors.Join(tx.SaveStep(w.Key, &record.StepRecord{Step: i, Status: jobhost.StepRunning, Number: 1, StartedAt: epoch}), tx.SaveWorkflow(w))
}

// ended is the transition at the end of a step.
func (c chain) ended(key record.Key, i int) doing {
	return func(tx record.WorkflowTx) error {
		w, err := tx.Workflow(key)
		if err != nil {
			return err
		}
		if w == nil {
			return errors.New("the workflow is gone")
		}
		if string(w.Record) != fmt.Sprint(i+1) {
			return fmt.Errorf("the workflow is at %q at the end of step %d", w.Record, i)
		}
		out, err := tx.JobOutput(fmt.Sprintf("%s.s%d.1", w.ID, i), 100)
		if err != nil {
			return err
		}
		if out == nil || len(out.Results) != 1 {
			return fmt.Errorf("step %d has returned %+v", i, out)
		}
		if err := tx.SaveStep(key, &record.StepRecord{Step: i, Status: jobhost.StepCompleted, Number: 1, EndedAt: epoch + 5}); err != nil {
			return err
		}
		if i+1 < c.steps {
			return c.step(tx, w, i+1)
		}
		w.Status, w.EndedAt, w.Ending = record.WorkflowCompleted, epoch+5, record.Ending{Step: "last", OutputSize: 3}
		return errors.Join(tx.SetWorkflowData(key, -2, out.Results[0]), tx.SaveWorkflow(w))
	}
}

// settle is the operation that ends a step.
func (c chain) settle(job *record.JobSpec, key record.Key, i int) *record.Settle {
	op := settlement(key, record.Succeeded)
	op.Result = fmt.Append(nil, "out", i)
	op.Transition = c.ended(job.Origin.Workflow, i)
	return op
}

// run lets a workflow go from one step to another, and returns the job that is open then.
func (c chain) run(s record.Store, job *record.JobSpec, from, to int) (*record.JobSpec, error) {
	for i := from; i < to; i++ {
		res, err := commit(s, c.settle(job, job.Key, i))
		if err != nil || res[0].Err != nil {
			return nil, errors.Join(err, res[0].Err)
		}
		if i+1 < c.steps {
			job = res[0].Then[0]
		}
	}
	return job, nil
}

// begin starts a workflow and returns its first job.
func (c chain) begin(s record.Store, id string) (*record.JobSpec, error) {
	res, err := commit(s, &record.Advance{Transition: c.start(id)})
	if err != nil {
		return nil, err
	}
	return res[0].Then[0], nil
}

// Many workflows go on at one time, each as if it were alone.
func testWorkflowsAtOnce(t *testing.T, h Harness) {
	s := open(t, h)
	const n = 100
	c := chain{steps: 5}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			job, err := c.begin(s.Store, fmt.Sprint("wf-", i))
			if err == nil {
				_, err = c.run(s.Store, job, 0, c.steps)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s.view(func(v record.WorkflowView) error {
		for i := range n {
			if err := c.check(t, v, fmt.Sprint("wf-", i)); err != nil {
				return err
			}
		}
		return nil
	})
	if open, err := s.OpenWorkflows(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("%v, %v", open, err)
	}
	s.checkCounts()
}

// check sees that a workflow has come to its end.
func (c chain) check(t *testing.T, v record.WorkflowView, id string) error {
	w, err := v.WorkflowByID(id)
	if err != nil {
		return err
	}
	if w == nil || w.Status != record.WorkflowCompleted || w.Ending.Step != "last" || w.EndedAt != epoch+5 {
		t.Errorf("workflow %s: %+v", id, w)
		return nil
	}
	data, err := v.WorkflowData(w.Key, -2)
	if err != nil || string(data) != fmt.Sprint("out", c.steps-1) {
		t.Errorf("workflow %s has returned %q, %v", id, data, err)
	}
	steps, err := v.WorkflowSteps(w.Key)
	if len(steps) != c.steps {
		t.Errorf("workflow %s has the steps %+v", id, steps)
	}
	for _, s := range steps {
		if s.Status != jobhost.StepCompleted || s.StartedAt != epoch || s.EndedAt != epoch+5 {
			t.Errorf("workflow %s: %+v", id, s)
		}
	}
	return err
}

// A workflow goes on after a restart where it stood.
func testWorkflowReopen(t *testing.T, h Harness) {
	if h.Reopen == nil {
		return
	}
	s := open(t, h)
	c := chain{steps: 6}
	job, err := c.begin(s.Store, "wf-a")
	if err == nil {
		job, err = c.run(s.Store, job, 0, 2)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := 2; i < c.steps; i++ {
		s.Store = h.Reopen(t, s.Store)
		defs, err := s.OpenDefinitions(t.Context())
		if err != nil || string(defs["hash"]) != "{}" {
			t.Fatalf("%q, %v", defs, err)
		}
		if job, err = c.run(s.Store, job, i, i+1); err != nil {
			t.Fatal(err)
		}
	}
	s.view(func(v record.WorkflowView) error { return c.check(t, v, "wf-a") })
	if defs, err := s.OpenDefinitions(t.Context()); err != nil || len(defs) != 0 {
		t.Errorf("%q, %v", defs, err)
	}
}
