package pgqueue

import (
	"context"
	"fmt"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// workflowView implements [record.WorkflowView] in a snapshot, for showing workflows.
type workflowView struct {
	s    *pgdb.Session
	rows *workflowRows // for the queries of its tables only

	// After the steps of a workflow their results are asked for; they are read together.
	steps    record.Key
	outputs  map[string]*outputRow
	children *childRows
}

// ViewWorkflows implements [record.WorkflowReader].
func (s *Store) ViewWorkflows(ctx context.Context, f func(record.WorkflowView) error) error {
	return s.db.Read(ctx, func(r *pgdb.Session) error { return f(&workflowView{s: r, rows: &s.image.workflows}) })
}

// Workflow implements [record.WorkflowView].
func (v *workflowView) Workflow(key record.Key) (*record.WorkflowRecord, error) {
	return visible(v.rows.rows.Look(v.s, int64(key)))
}

// WorkflowByID implements [record.WorkflowView].
func (v *workflowView) WorkflowByID(id string) (*record.WorkflowRecord, error) {
	children, err := v.childrenOfSteps()
	if err != nil {
		return nil, err
	}
	if row := children.byID[id]; row != nil {
		return visible(row, nil)
	}
	var scan workflowScan
	found, err := v.s.One(scan.into(), "SELECT "+workflowColumns+" FROM jobhost.workflow WHERE id=$1", id)
	if !found || err != nil {
		return nil, err
	}
	row := scan.row()
	return visible(&row, nil)
}

// WorkflowData implements [record.WorkflowView].
func (v *workflowView) WorkflowData(key record.Key, slot int) ([]byte, error) {
	k := slotKey{int64(key), int64(slot)}
	if data, err := v.children.kept(v.s, k); data != nil || err != nil {
		return data, err
	}
	return orNil(v.rows.data.Look(v.s, k))
}

func orNil(data *[]byte, err error) ([]byte, error) {
	if data == nil || err != nil {
		return nil, err
	}
	return *data, nil
}

// WorkflowSteps implements [record.WorkflowView].
func (v *workflowView) WorkflowSteps(key record.Key) ([]record.StepRecord, error) {
	v.steps, v.outputs, v.children = key, nil, nil
	return stepsOf(v.s, key)
}

func stepsOf(s *pgdb.Session, key record.Key) (steps []record.StepRecord, err error) {
	var r record.StepRecord
	var fallback int64
	var failure string
	into := []any{&r.Step, &r.Status, &r.Number, &fallback, &r.Reason, &r.Tasks, &r.StartedAt, &r.EndedAt, &failure}
	return steps, s.Each(into, func() (err error) {
		r.Fallback, r.Worker = fallback&1 != 0, fallback&2 != 0
		r.Failure, err = parseFailure(&failure)
		steps = append(steps, r)
		return err
	}, `SELECT step, status, number, fallback, reason, tasks, started_at, ended_at, failure
		FROM jobhost.workflow_step WHERE workflow=$1 ORDER BY step`, int64(key))
}

// StepFailure implements [record.WorkflowView].
func (v *workflowView) StepFailure(key record.Key, step int) (*jobhost.Failure, error) {
	text, err := v.rows.steps.failures.Look(v.s, stepKey{int64(key), int64(step)})
	if err != nil {
		return nil, err
	}
	return parseFailure(text)
}

// Definition implements [record.WorkflowView].
func (v *workflowView) Definition(hash string) ([]byte, error) {
	return orNil(v.rows.defs.Look(v.s, hash))
}

// JobFailure implements [record.WorkflowView].
func (v *workflowView) JobFailure(id string) (*jobhost.Failure, error) {
	dead, err := v.rows.dead.Look(v.s, id)
	if dead == nil || dead.first == 0 || err != nil {
		return nil, err
	}
	text, err := v.rows.last.Look(v.s, dead.first)
	if err != nil {
		return nil, err
	}
	return parseFailure(text)
}

// Workflows implements [record.WorkflowReader].
func (s *Store) Workflows(ctx context.Context, q record.WorkflowQuery) ([]record.WorkflowRecord, error) {
	sql, args := listWorkflows(&q)
	var list []record.WorkflowRecord
	err := s.db.Read(ctx, func(r *pgdb.Session) error {
		list = nil
		var scan workflowScan
		return r.Each(scan.into(), func() error {
			w := scan.row()
			list = append(list, w.WorkflowRecord)
			return w.damaged
		}, sql, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("list workflows: %w", err)
	}
	return list, nil
}

// listWorkflows returns the statement of a list.
func listWorkflows(q *record.WorkflowQuery) (sql string, args []any) {
	where := []string{"status<>4"}
	add := func(condition string, arg any) {
		args = append(args, arg)
		where = append(where, fmt.Sprintf(condition, len(args)))
	}
	if q.Parent != "" {
		add("parent>0 AND parent=(SELECT p.seq FROM jobhost.workflow p WHERE p.id=$%d)", q.Parent)
	}
	if q.Name != "" {
		add("name=$%d", q.Name)
	}
	if q.Status != nil {
		// Written out, so that the planner knows how rare it is.
		where = append(where, fmt.Sprintf("status=%d", *q.Status))
	}
	if q.After != 0 {
		add("started_at>=$%d", int64(q.After))
	}
	if q.Before != 0 {
		add("started_at<$%d", int64(q.Before))
	}
	if q.Below != 0 {
		add("seq<$%d", int64(q.Below))
	}
	args = append(args, q.Limit)
	columns := strings.TrimSuffix(workflowColumns, "record") + "''::bytea"
	return fmt.Sprintf("SELECT %s FROM jobhost.workflow WHERE %s ORDER BY seq DESC LIMIT $%d", columns, strings.Join(where, " AND "), len(args)), args
}

// OpenWorkflows implements [record.WorkflowReader].
func (s *Store) OpenWorkflows(ctx context.Context) (open map[string]int64, err error) {
	err = s.db.ReadLong(ctx, func(r *pgdb.Session) error {
		open = map[string]int64{}
		var name string
		var n int64
		return r.Each([]any{&name, &n}, func() error {
			open[name] = n
			return nil
		}, "SELECT name, count(*) FROM jobhost.workflow WHERE status=0 GROUP BY name")
	})
	if err != nil {
		return nil, fmt.Errorf("count workflows: %w", err)
	}
	return open, nil
}

// OpenDefinitions implements [record.WorkflowReader].
func (s *Store) OpenDefinitions(ctx context.Context) (texts map[string][]byte, err error) {
	err = s.db.ReadLong(ctx, func(r *pgdb.Session) error {
		texts = map[string][]byte{}
		var hash string
		var text []byte
		return r.Each([]any{&hash, &text}, func() error {
			texts[hash], text = text, nil
			return nil
		}, "SELECT hash, text FROM jobhost.definition WHERE hash IN (SELECT definition FROM jobhost.workflow WHERE status=0)")
	})
	if err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	return texts, nil
}
