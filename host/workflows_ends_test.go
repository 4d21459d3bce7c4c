package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// statement is a change of the database.
type statement struct {
	sql  string
	done chan error
}

func (s *statement) Ops() int                    { return 1 }
func (s *statement) Apply(tx *sqlitedb.Tx) error { return tx.Stmt(s.sql).Exec() }
func (s *statement) Done(err error)              { s.done <- err }

func change(t *testing.T, db *sqlitedb.DB, sql string) {
	t.Helper()
	s := &statement{sql, make(chan error, 1)}
	db.Write(s)
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
}

// TestWorkflowsWithoutDefinition has workflows whose definitions can't be read any more: they end with what happens
// next, those above learn of it, and nothing that comes later lets them go on.
func TestWorkflowsWithoutDefinition(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	db := hosttest.OnDB(t, &cfg)
	child := jobhost.Workflow{Name: "child", Steps: []jobhost.Step{{Name: "ok", Signal: "go"}, {Name: "after", Worker: "test", Needs: []string{"ok"}}}}
	cfg.Workflows.Definitions = []jobhost.Workflow{child}
	h, stop := run(t, cfg)
	parent := startWorkflow(t, h, jobhost.WorkflowStart{
		ID: "wf-parent", Definition: &jobhost.Workflow{Name: "parent", Steps: []jobhost.Step{{Name: "c", Workflow: "child"}}},
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	change(t, db, "UPDATE definition SET text=CAST(replace(CAST(text AS TEXT), 'signal', 'single') AS BLOB), sum=NULL")
	cfg.Workflows.Definitions = nil
	h, stop = run(t, cfg)
	conflict := func(what string, err error) {
		t.Helper()
		if jobhost.CodeOf(err) != jobhost.CodeConflict {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := h.CancelWorkflow(t.Context(), "wf-parent.c.1", "")
	conflict("cancel", err)
	if got := workflowEnded(t, h, "wf-parent.c.1"); got.Status != jobhost.WorkflowFailed || got.Failure.Code != jobhost.FailInternal {
		t.Errorf("the child is %s: %+v", got.Status, got.Failure)
	}
	if got := workflowEnded(t, h, parent); got.Status != jobhost.WorkflowFailed {
		t.Errorf("the parent is %s", got.Status)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	change(t, db, "UPDATE definition SET text=CAST(replace(CAST(text AS TEXT), 'single', 'signal') AS BLOB)")
	h, _ = run(t, cfg)
	conflict("signal", h.SignalWorkflow(t.Context(), "wf-parent.c.1", jobhost.WorkflowSignal{Name: "go"}))
	_, err = h.RetryWorkflow(t.Context(), "wf-parent.c.1", "")
	conflict("retry", err)
	if got := workflowEnded(t, h, "wf-parent.c.1"); got.Status != jobhost.WorkflowFailed || got.Steps[1].Job != "" {
		t.Errorf("the child goes on: %s", statuses(&got))
	}
}

// TestWorkflowsAreKeptWhileSomethingRuns removes workflows that have ended, of which a workflow was retried.
func TestWorkflowsAreKeptWhileSomethingRuns(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Workflows.Definitions = []jobhost.Workflow{{Name: "child", Steps: []jobhost.Step{{Name: "a", Worker: "test", Entry: "fail_permanent"}}}}
	h, _ := run(t, cfg)
	id := startWorkflow(t, h, jobhost.WorkflowStart{
		Definition: &jobhost.Workflow{Name: "w", Steps: []jobhost.Step{{Name: "c", Workflow: "child", OnError: jobhost.ContinueWorkflow}}},
		Retention:  30 * time.Minute,
	})
	if got := workflowEnded(t, h, id); got.Status != jobhost.WorkflowCompleted {
		t.Fatal(statuses(&got))
	}
	if _, err := h.PauseWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.RetryWorkflow(t.Context(), id+".c.1", ""); err != nil {
		t.Fatal(err)
	}
	if err := h.DeleteWorkflow(t.Context(), id); jobhost.CodeOf(err) != jobhost.CodeConflict {
		t.Errorf("delete: %v", err)
	}
	done := make(chan record.OpResult, 1)
	at := record.MillisOf(time.Now().Add(time.Hour))
	cfg.Store.Commit([]record.Op{&record.Tidy{At: at, Limit: 100}}, func(r []record.OpResult, _ error) { done <- r[0] })
	if r := <-done; r.Next <= at {
		t.Errorf("the next look at what is over is at %d, this was %d", r.Next, at)
	}
	if _, err := h.ResumeWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	workflowEnded(t, h, id+".c.1")
	if err := h.DeleteWorkflow(t.Context(), id); err != nil {
		t.Error(err)
	}
}

// TestWorkflowIDsOfChildren starts a workflow under the id that the child of another is to have.
func TestWorkflowIDsOfChildren(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Workflows.Definitions = []jobhost.Workflow{{Name: "child", Steps: []jobhost.Step{{Name: "a", Signal: "never"}}}}
	h, _ := run(t, cfg)
	name := strings.Repeat("c", 60)
	w := &jobhost.Workflow{Name: "w", Steps: []jobhost.Step{{Name: name, Workflow: "child"}}}
	id := startWorkflow(t, h, jobhost.WorkflowStart{ID: "wf-" + strings.Repeat("x", 60), Definition: w})
	got, err := h.Workflow(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	taken := got.Steps[0].Workflow
	if _, err := h.CancelWorkflow(t.Context(), id, ""); err != nil {
		t.Fatal(err)
	}
	if err := h.DeleteWorkflow(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	startWorkflow(t, h, jobhost.WorkflowStart{ID: taken, Workflow: "child"})
	startWorkflow(t, h, jobhost.WorkflowStart{ID: id, Definition: w})
	if got = workflowEnded(t, h, id); got.Status != jobhost.WorkflowFailed || !strings.Contains(got.Failure.Message, "already") {
		t.Errorf("it is %s: %+v", got.Status, got.Failure)
	}
}

// TestWorkflowsShowSmallOutputs has a large output, which is not shown, before a small one, which is.
func TestWorkflowsShowSmallOutputs(t *testing.T) {
	t.Parallel()
	h, _ := run(t, config(t))
	id := startWorkflow(t, h, jobhost.WorkflowStart{
		Definition: &jobhost.Workflow{Name: "w", Steps: []jobhost.Step{
			{Name: "a", Worker: "test", Tasks: 200}, {Name: "b", Worker: "test", Needs: []string{"a"}, Input: `1`},
		}},
		Input: []byte(`"` + strings.Repeat("x", 10_000) + `"`),
	})
	got := workflowEnded(t, h, id)
	for i, want := range []int64{200 * 10_002, 1} {
		if s := got.Steps[i]; s.OutputSize != want || (len(s.Output) > 0) != (want == 1) {
			t.Errorf("step %s is %s and shows %d bytes of %d, which are %d: %+v", s.Name, s.Status, len(s.Output), s.OutputSize, want, s.Failure)
		}
	}
}
