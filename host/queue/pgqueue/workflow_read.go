package pgqueue

import (
	"context"
	"fmt"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// workflowView implements [record.WorkflowView] for people, in a snapshot.
type workflowView struct {
	s    *pgdb.Session
	rows *workflowRows // whose tables know how rows are read

	// The steps of a workflow are followed by what they have returned, which is read together.
	steps   record.Key
	outputs map[string]*outputRow
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
	return orNil(v.rows.data.Look(v.s, slotKey{int64(key), int64(slot)}))
}

func orNil(data *[]byte, err error) ([]byte, error) {
	if data == nil || err != nil {
		return nil, err
	}
	return *data, nil
}

// WorkflowSteps implements [record.WorkflowView].
func (v *workflowView) WorkflowSteps(key record.Key) ([]record.StepRecord, error) {
	v.steps, v.outputs = key, nil
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

// JobOutput implements [record.WorkflowView].
func (v *workflowView) JobOutput(id string, most int) (*record.JobOutput, error) {
	if v.steps != 0 && v.outputs == nil {
		if err := v.readOutputs(); err != nil {
			return nil, err
		}
	}
	if o := v.outputs[id]; o != nil && (o.data != nil || o.size == 0 || o.size > int64(most) || o.ref != "") {
		return o.output(int64(most)), nil
	}
	o, err := v.rows.outputs.Look(v.s, outputKey{id, int64(most)})
	if o == nil || err != nil {
		return nil, err
	}
	return o.output(int64(most)), nil
}

// Bounds of what is read of all steps of a workflow together, in bytes.
const (
	readOutput  = 64 << 10
	readOutputs = 1 << 20
)

// readOutputs reads what the jobs of the workflow have returned: of all how large it is, and the content of those that
// are small, as far as there is room.
func (v *workflowView) readOutputs() error {
	v.outputs = map[string]*outputRow{}
	var id string
	var o outputRow
	return v.s.Each([]any{&id, &o.seq, &o.tasks, &o.size, &o.ref, &o.keys, &o.data}, func() error {
		row := o
		v.outputs[id] = &row
		o.keys, o.data = nil, nil
		return nil
	}, `WITH j AS (SELECT j.id, j.seq, j.tasks, s.size, s.ref, sum(s.size) FILTER (WHERE s.size<=$2) OVER (ORDER BY j.seq) AS total
			FROM jobhost.workflow_job w JOIN jobhost.job j ON j.seq=w.job
			CROSS JOIN LATERAL (SELECT coalesce(sum(result_size), 0)::bigint AS size, coalesce(max(ref), '') AS ref
				FROM jobhost.task WHERE seq>=j.seq AND seq<j.seq+j.tasks) s
			WHERE w.workflow=$1)
		SELECT j.id, j.seq, j.tasks, j.size, j.ref, r.keys, r.data
		FROM j CROSS JOIN LATERAL (SELECT array_agg(task) AS keys, array_agg(data) AS data
			FROM jobhost.result WHERE j.ref='' AND j.size<=$2 AND j.total<=$3 AND task>=j.seq AND task<j.seq+j.tasks) r`,
		int64(v.steps), int64(readOutput), int64(readOutputs))
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
	err = s.db.Read(ctx, func(r *pgdb.Session) error {
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
	err = s.db.Read(ctx, func(r *pgdb.Session) error {
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
