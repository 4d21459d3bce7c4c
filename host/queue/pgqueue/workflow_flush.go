package pgqueue

import (
	"github.com/jackc/pgx/v5"
)

// Flush implements [pgdb.Member].
func (r *workflowRows) Flush(b *pgx.Batch) error {
	if err := r.flushWorkflows(b); err != nil {
		return err
	}
	r.flushDefinitions(b)
	r.flushData(b)
	r.flushJobs(b)
	r.steps.flush(b)
	return nil
}

// storedWorkflow is a row with its JSON texts.
type storedWorkflow struct {
	*workflowRow
	labels, ending string
}

func (r *workflowRows) flushWorkflows(b *pgx.Batch) error {
	var added, changed []storedWorkflow
	for c := range r.rows.Changes() {
		w := storedWorkflow{workflowRow: c.Is}
		var err error
		if w.ending, err = endingText(&c.Is.Ending); err != nil {
			return err
		}
		if c.Was != nil {
			changed = append(changed, w)
			continue
		}
		if w.labels, err = jsonText(w.Labels, len(w.Labels)); err != nil {
			return err
		}
		added = append(added, w)
	}
	if len(added) > 0 {
		r.insert(b, added)
	}
	if len(changed) > 0 {
		r.update(b, changed)
	}
	return nil
}

func (r *workflowRows) insert(b *pgx.Batch, added []storedWorkflow) {
	number := func(of func(*storedWorkflow) int64) []int64 { return column(added, of) }
	text := func(of func(*storedWorkflow) string) []string { return column(added, of) }
	b.Queue(r.db.SQL(`INSERT INTO jobhost.workflow (`+workflowColumns+`)
		SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::bytea[], $7::bigint[], $8::bigint[],
			$9::text[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::text[], $18::bytea[])`),
		number(func(w *storedWorkflow) int64 { return int64(w.Key) }), text(func(w *storedWorkflow) string { return w.ID }),
		text(func(w *storedWorkflow) string { return w.Name }), text(func(w *storedWorkflow) string { return w.Definition }),
		column(added, func(w *storedWorkflow) int16 { return int16(w.Status) }),
		column(added, func(w *storedWorkflow) []byte { return w.Digest[:] }),
		number(func(w *storedWorkflow) int64 { return int64(w.Depth) }), number(func(w *storedWorkflow) int64 { return int64(w.Parent) }),
		text(func(w *storedWorkflow) string { return w.ParentID }), text(func(w *storedWorkflow) string { return w.ParentStep }),
		text(func(w *storedWorkflow) string { return w.ParentMark }), text(func(w *storedWorkflow) string { return w.labels }),
		number(func(w *storedWorkflow) int64 { return int64(w.StartedAt) }),
		number(func(w *storedWorkflow) int64 { return w.Retention.Milliseconds() }),
		number(func(w *storedWorkflow) int64 { return int64(w.EndedAt) }), number(func(w *storedWorkflow) int64 { return int64(w.ExpiresAt) }),
		text(func(w *storedWorkflow) string { return w.ending }), column(added, func(w *storedWorkflow) []byte { return notNil(w.Record) }))
}

// update writes the columns of a workflow that can change. PostgreSQL touches an index only if its columns do.
func (r *workflowRows) update(b *pgx.Batch, changed []storedWorkflow) {
	number := func(of func(*storedWorkflow) int64) []int64 { return column(changed, of) }
	b.Queue(r.db.SQL(`UPDATE jobhost.workflow AS w SET status=t.status, ended_at=t.ended_at, expires_at=t.expires_at, ending=t.ending, record=t.record
		FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::text[], $6::bytea[])
		AS t(seq, status, ended_at, expires_at, ending, record) WHERE w.seq=t.seq`),
		number(func(w *storedWorkflow) int64 { return int64(w.Key) }), column(changed, func(w *storedWorkflow) int16 { return int16(w.Status) }),
		number(func(w *storedWorkflow) int64 { return int64(w.EndedAt) }), number(func(w *storedWorkflow) int64 { return int64(w.ExpiresAt) }),
		column(changed, func(w *storedWorkflow) string { return w.ending }),
		column(changed, func(w *storedWorkflow) []byte { return notNil(w.Record) })).
		Exec(expect(len(changed), "workflows"))
}

// flushDefinitions writes those that are new, and how many workflows run each.
func (r *workflowRows) flushDefinitions(b *pgx.Batch) {
	var hashes []string
	var texts [][]byte
	for c := range r.defs.Changes() {
		hashes, texts = append(hashes, c.Key), append(texts, notNil(*c.Is))
	}
	if len(hashes) > 0 {
		b.Queue(r.db.SQL("INSERT INTO jobhost.definition (hash, n, text) SELECT hash, 0, text FROM unnest($1::text[], $2::bytea[]) AS t(hash, text)"), hashes, texts)
	}
	if len(r.uses) == 0 {
		return
	}
	used, times := make([]string, 0, len(r.uses)), make([]int64, 0, len(r.uses))
	for hash, n := range r.uses {
		used, times = append(used, hash), append(times, n)
	}
	b.Queue(r.db.SQL("UPDATE jobhost.definition AS d SET n=d.n+t.n FROM unnest($1::text[], $2::bigint[]) AS t(hash, n) WHERE d.hash=t.hash"), used, times).
		Exec(expect(len(used), "definitions"))
}

func (r *workflowRows) flushData(b *pgx.Batch) {
	var keys []slotKey
	var data [][]byte
	for c := range r.data.Changes() {
		keys, data = append(keys, c.Key), append(data, *c.Is)
	}
	if len(keys) == 0 {
		return
	}
	b.Queue(r.db.SQL(`INSERT INTO jobhost.workflow_data (workflow, slot, data) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])
		ON CONFLICT (workflow, slot) DO UPDATE SET data=excluded.data`),
		column(keys, func(k *slotKey) int64 { return k.workflow }), column(keys, func(k *slotKey) int64 { return k.slot }), data)
}

func (r *workflowRows) flushJobs(b *pgx.Batch) {
	var added []workflowJob
	for c := range r.jobs.Changes() {
		added = append(added, c.Key)
	}
	if len(added) == 0 {
		return
	}
	b.Queue(r.db.SQL("INSERT INTO jobhost.workflow_job (workflow, job) SELECT * FROM unnest($1::bigint[], $2::bigint[])"),
		column(added, func(j *workflowJob) int64 { return j.workflow }), column(added, func(j *workflowJob) int64 { return j.job }))
}
