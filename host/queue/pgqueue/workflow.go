package pgqueue

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// workflowRows are the workflows that transitions look at and change. It is a [pgdb.Member].
type workflowRows struct {
	db    *pgdb.DB
	rows  pgdb.Table[int64, workflowRow] // by key
	ids   pgdb.Table[string, int64]      // keys, by id
	defs  pgdb.Table[string, []byte]     // texts of definitions, by hash
	data  pgdb.Table[slotKey, []byte]
	jobs  pgdb.Table[workflowJob, struct{}]
	steps stepRows
	outputRows

	uses map[string]int64 // how many more workflows run a definition, not flushed
}

// workflowRow is a workflow. damaged says why parts of it can't be read, which are left out.
type workflowRow struct {
	record.WorkflowRecord
	damaged error
}

// slotKey names a slot of a workflow's data.
type slotKey struct{ workflow, slot int64 }

// workflowJob is a job of a workflow.
type workflowJob struct{ workflow, job int64 }

const workflowColumns = `seq, id, name, definition, status, digest, depth, parent, parent_id, parent_step, parent_mark,
	labels, started_at, retention_ms, ended_at, expires_at, ending, record`

// workflowScan is what a row with workflowColumns is scanned into.
type workflowScan struct {
	record.WorkflowRecord
	digest         []byte
	labels, ending string
	retention      int64
}

func (s *workflowScan) into() []any {
	return []any{
		&s.Key, &s.ID, &s.Name, &s.Definition, &s.Status, &s.digest, &s.Depth, &s.Parent, &s.ParentID, &s.ParentStep, &s.ParentMark,
		&s.labels, &s.StartedAt, &s.retention, &s.EndedAt, &s.ExpiresAt, &s.ending, &s.Record,
	}
}

// row returns the row that was scanned.
func (s *workflowScan) row() workflowRow {
	w := workflowRow{WorkflowRecord: s.WorkflowRecord}
	w.Retention = millis(s.retention)
	copy(w.Digest[:], s.digest)
	err := errors.Join(decode(s.labels, &w.Labels), decode(s.ending, &w.Ending))
	if err != nil {
		w.Record = nil
		w.damaged = &jobhost.Error{Code: jobhost.CodeDamaged, Message: fmt.Sprintf("workflow %s is damaged: %v", w.ID, err)}
	}
	return w
}

func (r *workflowRows) init(db *pgdb.DB) {
	r.db, r.uses = db, map[string]int64{}
	r.rows = pgdb.Table[int64, workflowRow]{
		DB: db, SQL: "SELECT " + workflowColumns + " FROM jobhost.workflow WHERE seq=ANY($1)",
		Args: func(keys []int64) []any { return []any{keys} },
		Scan: func(rows pgx.Rows) (int64, workflowRow, error) {
			var s workflowScan
			err := rows.Scan(s.into()...)
			return int64(s.Key), s.row(), err
		},
		Bytes: func(w *workflowRow) int { return len(w.Record) },
	}
	r.ids = pgdb.Table[string, int64]{
		DB: db, SQL: "SELECT id, seq FROM jobhost.workflow WHERE id=ANY($1)",
		Args: func(ids []string) []any { return []any{ids} },
		Scan: func(rows pgx.Rows) (id string, key int64, err error) {
			err = rows.Scan(&id, &key)
			return id, key, err
		},
	}
	r.defs = pgdb.Table[string, []byte]{
		DB: db, SQL: "SELECT hash, text FROM jobhost.definition WHERE hash=ANY($1)",
		Args: func(hashes []string) []any { return []any{hashes} },
		Scan: func(rows pgx.Rows) (hash string, text []byte, err error) {
			err = rows.Scan(&hash, &text)
			return hash, text, err
		},
		Bytes: func(text *[]byte) int { return len(*text) },
	}
	r.initData()
	r.initJobs()
	r.steps.init(db)
	r.outputRows.init(db)
}

func (r *workflowRows) initData() {
	r.data = pgdb.Table[slotKey, []byte]{
		DB: r.db,
		SQL: `SELECT workflow, slot, data FROM unnest($1::bigint[], $2::bigint[]) AS t(workflow, slot)
			JOIN jobhost.workflow_data USING (workflow, slot)`,
		Args: func(keys []slotKey) []any {
			return []any{column(keys, func(k *slotKey) int64 { return k.workflow }), column(keys, func(k *slotKey) int64 { return k.slot })}
		},
		Scan: func(rows pgx.Rows) (k slotKey, data []byte, err error) {
			err = rows.Scan(&k.workflow, &k.slot, &data)
			return k, data, err
		},
		Bytes: func(data *[]byte) int { return len(*data) },
	}
}

func (r *workflowRows) initJobs() {
	r.jobs = pgdb.Table[workflowJob, struct{}]{
		DB: r.db,
		SQL: `SELECT workflow, job FROM unnest($1::bigint[], $2::bigint[]) AS t(workflow, job)
			JOIN jobhost.workflow_job USING (workflow, job)`,
		Args: func(keys []workflowJob) []any {
			return []any{column(keys, func(k *workflowJob) int64 { return k.workflow }), column(keys, func(k *workflowJob) int64 { return k.job })}
		},
		Scan: func(rows pgx.Rows) (k workflowJob, _ struct{}, err error) {
			err = rows.Scan(&k.workflow, &k.job)
			return k, struct{}{}, err
		},
	}
}

// tables are those whose rows are read.
func (r *workflowRows) tables() []table {
	return []table{&r.rows, &r.ids, &r.defs, &r.data, &r.jobs, &r.steps.failures, &r.outputs, &r.dead, &r.last}
}

// Read implements [pgdb.Member].
func (r *workflowRows) Read(b *pgx.Batch) {
	for _, t := range r.tables() {
		t.Read(b)
	}
}

// Flushed implements [pgdb.Member].
func (r *workflowRows) Flushed() {
	for _, t := range r.tables() {
		t.Flushed()
	}
	r.forget()
}

// AfterCommit implements [pgdb.Member].
func (r *workflowRows) AfterCommit() {
	for _, t := range r.tables() {
		t.AfterCommit()
	}
	r.outputRows.Flushed()
	r.forget()
}

// AfterRollback implements [pgdb.Member].
func (r *workflowRows) AfterRollback() {
	for _, t := range r.tables() {
		t.AfterRollback()
	}
	r.forget()
}

func (r *workflowRows) forget() {
	clear(r.uses)
	r.steps.forget()
}
