package pgqueue

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// outputRows are the results and failures of jobs that transitions look at. They are kept for one commit only, since the next
// one may change them.
type outputRows struct {
	outputs pgdb.Table[outputKey, outputRow]
	dead    pgdb.Table[string, deadTask] // by the id of the job
	last    pgdb.Table[int64, string]    // the last failures of tasks, in JSON
}

// outputKey stands for the results of a job, if they have no more than most bytes.
type outputKey struct {
	id   string
	most int64
}

// outputRow is the results of a job: data has those of the tasks in keys.
type outputRow struct {
	seq, tasks, size int64
	ref              string
	keys             []int64
	data             [][]byte
}

// deadTask is the first dead task of a job; 0 = it has none.
type deadTask struct{ seq, tasks, first int64 }

func (r *outputRows) init(db *pgdb.DB) {
	r.outputs = pgdb.Table[outputKey, outputRow]{
		DB: db,
		SQL: `SELECT t.id, t.most, j.seq, j.tasks, s.size, s.ref, r.keys, r.data
			FROM unnest($1::text[], $2::bigint[]) AS t(id, most) JOIN jobhost.job j ON j.id=t.id
			CROSS JOIN LATERAL (SELECT coalesce(sum(result_size), 0)::bigint AS size, coalesce(max(ref), '') AS ref
				FROM jobhost.task WHERE seq>=j.seq AND seq<j.seq+j.tasks) s
			CROSS JOIN LATERAL (SELECT array_agg(task) AS keys, array_agg(data) AS data
				FROM jobhost.result WHERE s.ref='' AND s.size<=t.most AND task>=j.seq AND task<j.seq+j.tasks) r`,
		Args: func(keys []outputKey) []any {
			return []any{column(keys, func(k *outputKey) string { return k.id }), column(keys, func(k *outputKey) int64 { return k.most })}
		},
		Scan: func(rows pgx.Rows) (k outputKey, o outputRow, err error) {
			err = rows.Scan(&k.id, &k.most, &o.seq, &o.tasks, &o.size, &o.ref, &o.keys, &o.data)
			return k, o, err
		},
	}
	r.dead = pgdb.Table[string, deadTask]{
		DB: db,
		SQL: `SELECT id, seq, tasks, coalesce((SELECT min(t.seq) FROM jobhost.task t WHERE t.seq>=j.seq AND t.seq<j.seq+j.tasks AND t.status+0=2), 0)
			FROM jobhost.job j WHERE id=ANY($1)`,
		Args: func(ids []string) []any { return []any{ids} },
		Scan: func(rows pgx.Rows) (id string, d deadTask, err error) {
			err = rows.Scan(&id, &d.seq, &d.tasks, &d.first)
			return id, d, err
		},
	}
	r.last = pgdb.Table[int64, string]{
		DB: db, SQL: "SELECT DISTINCT ON (task) task, record FROM jobhost.failure WHERE task=ANY($1) ORDER BY task, seq DESC",
		Args: func(tasks []int64) []any { return []any{tasks} },
		Scan: func(rows pgx.Rows) (task int64, text string, err error) {
			err = rows.Scan(&task, &text)
			return task, text, err
		},
	}
}

// Flushed forgets all rows.
func (r *outputRows) Flushed() {
	r.outputs.Flushed()
	r.dead.Flushed()
	r.last.Flushed()
}

// output returns the results of the job.
func (o *outputRow) output(most int64) *record.JobOutput {
	out := &record.JobOutput{Tasks: int(o.tasks), Size: o.size, Ref: o.ref}
	if o.ref != "" || o.size > most {
		return out
	}
	out.Results = make([][]byte, o.tasks)
	for i := range out.Results {
		out.Results[i] = []byte{}
	}
	for i, key := range o.keys {
		out.Results[key-o.seq] = o.data[i]
	}
	return out
}

// changed returns the row with this commit's changes of the tasks.
func (o *outputRow) changed(tasks *taskRows) *outputRow {
	is, changed := *o, false
	for key := o.seq; key < o.seq+o.tasks; key++ {
		c, ok := tasks.rows.Change(key)
		if !ok {
			continue
		}
		changed = true
		is.size += c.Is.resultSize
		if c.Was != nil {
			is.size -= c.Was.resultSize
		}
		is.ref = max(is.ref, c.Is.ref)
	}
	if !changed {
		return o
	}
	is.keys, is.data = append([]int64(nil), o.keys...), append([][]byte(nil), o.data...)
	for i := range tasks.results {
		if r := &tasks.results[i]; r.task >= o.seq && r.task < o.seq+o.tasks {
			is.keys, is.data = append(is.keys, r.task), append(is.data, r.data)
		}
	}
	return &is
}

// changed returns the first dead task with this commit's changes of the tasks; 0 = there is none.
func (d *deadTask) changed(tasks *taskRows) int64 {
	for key := d.seq; key < d.seq+d.tasks && (d.first == 0 || key < d.first); key++ {
		if c, ok := tasks.rows.Change(key); ok && c.Is.status == record.Dead {
			return key
		}
	}
	return d.first
}

// lastFailure returns the last failure of a task that was not flushed; empty = there is none.
func (r *taskRows) lastFailure(task int64) string {
	for i := len(r.failures) - 1; i >= 0; i-- {
		if r.failures[i].task == task {
			return r.failures[i].record
		}
	}
	return ""
}

// parseFailure reads a failure as it is stored; nil = there is none.
func parseFailure(text *string) (*jobhost.Failure, error) {
	if text == nil || *text == "" {
		return nil, nil
	}
	f := new(jobhost.Failure)
	if err := decode(*text, f); err != nil {
		return nil, fmt.Errorf("read a failure: %w", err)
	}
	return f, nil
}
