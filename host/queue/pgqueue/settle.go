package pgqueue

import (
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// taskRows are the tasks that operations look at and change, and what their attempts leave behind: results, failures, logs.
// It is a [pgdb.Member].
type taskRows struct {
	db    *pgdb.DB
	rows  pgdb.Table[int64, taskRow] // by key
	parts pgdb.Table[int64, record.StatusCounts]

	// What was added and not flushed:
	results  []itemRow
	failures []failureRow
	logs     []logRow
}

type failureRow struct {
	task   int64
	record string
}

type logRow struct {
	task, idx, attempt, dropped int64
	text                        []byte
}

// taskRow is a row of the table of tasks.
type taskRow struct {
	seq, job, idx, tasks, worker, level int64
	status                              record.Status
	attempt, token                      int64
	readyAt, startedAt, endedAt         int64
	resultSize, fuel, group, deadline   int64
	retention, expiresAt                int64
	suspect                             bool
	ref                                 string
}

const taskColumns = `seq, job, idx, tasks, worker, level, status, attempt, token, ready_at, started_at, ended_at,
	result_size, fuel, lane_group, deadline, retention_ms, expires_at, suspect, ref`

func (t *taskRow) into() []any {
	return []any{
		&t.seq, &t.job, &t.idx, &t.tasks, &t.worker, &t.level, &t.status, &t.attempt, &t.token, &t.readyAt, &t.startedAt, &t.endedAt,
		&t.resultSize, &t.fuel, &t.group, &t.deadline, &t.retention, &t.expiresAt, &t.suspect, &t.ref,
	}
}

// fresh reports whether nothing has become of the task since its job was added.
func (t *taskRow) fresh() bool {
	return *t == taskRow{
		seq: t.seq, job: t.job, idx: t.idx, tasks: t.tasks, worker: t.worker, level: t.level, readyAt: t.readyAt, group: t.group,
		deadline: t.deadline, retention: t.retention,
	}
}

func (r *taskRows) init(db *pgdb.DB) {
	r.db = db
	byKey := func(keys []int64) []any { return []any{keys} }
	r.rows = pgdb.Table[int64, taskRow]{
		DB: db, SQL: "SELECT " + taskColumns + " FROM jobhost.task WHERE seq=ANY($1)", Args: byKey,
		Scan: func(rows pgx.Rows) (key int64, t taskRow, err error) {
			err = rows.Scan(t.into()...)
			return t.seq, t, err
		},
		Cold: func(t *taskRow) bool { return t.status != record.Open },
	}
	r.parts = pgdb.Table[int64, record.StatusCounts]{
		DB: db, SQL: "SELECT job, open, succeeded, dead, cancelled FROM jobhost.part WHERE job=ANY($1)", Args: byKey,
		Scan: func(rows pgx.Rows) (key int64, n record.StatusCounts, err error) {
			err = rows.Scan(&key, &n[record.Open], &n[record.Succeeded], &n[record.Dead], &n[record.Cancelled])
			return key, n, err
		},
	}
}

// add adds the tasks of a job.
func (r *taskRows) add(key, worker, tasks int64, job *record.JobSpec) {
	level, group := int64(job.Priority.Level()), int64(job.Group())
	for i := range tasks {
		r.rows.Put(key+i, taskRow{
			seq: key + i, job: key, idx: i, tasks: tasks, worker: worker, level: level, readyAt: int64(job.ReadyAt), group: group,
			deadline: int64(job.Deadline), retention: job.Retention.Milliseconds(),
		})
	}
	if tasks > 1 {
		r.parts.Put(key, record.StatusCounts{record.Open: tasks})
	}
}

// settle ends an attempt, if its lease is still valid.
func (b *batch) settle(tx *pgdb.Tx, op *record.Settle, res *record.OpResult) error {
	im, key := b.image, int64(op.Key)
	task := im.tasks.rows.Get(tx, key)
	if task == nil || task.token != op.Token || task.status != record.Open {
		res.Err = record.ErrFenced
		return nil
	}
	if op.Effects != nil && op.Status == record.Succeeded {
		if err := b.applyEffects(tx, task.worker, op, res); err != nil || res.Err != nil {
			return err
		}
		if task = im.tasks.rows.Get(tx, key); task == nil { // effects may have called Direct, after which the image is empty
			return nil
		}
	}
	if task.tasks > 1 && op.Status != record.Open {
		im.tasks.parts.Get(tx, task.job)
	}
	if tx.Missed() {
		return nil
	}
	next := *task
	if err := im.tasks.record(&next, op); err != nil {
		return err
	}
	next.token++
	next.attempt, next.startedAt = int64(op.Attempt), int64(op.StartedAt)
	next.fuel += op.Fuel
	if op.Status == record.Open {
		next.readyAt = int64(op.ReadyAt)
		im.tasks.rows.Put(key, next)
		return nil
	}
	next.status, next.endedAt, next.expiresAt = op.Status, int64(op.EndedAt), int64(op.ExpiresAt)
	if op.Status == record.Succeeded {
		next.resultSize = int64(len(op.Result))
		if op.ResultRef != "" {
			next.ref, next.resultSize = op.ResultRef, op.ResultSize
			im.addObject(op.ResultRef)
		}
	}
	im.tasks.rows.Put(key, next)
	im.expires(next.job, op.ExpiresAt)
	im.count(next.worker, record.Open, -1)
	im.count(next.worker, op.Status, 1)
	if next.tasks == 1 {
		res.JobEnded = true
		res.Final[op.Status] = 1
	} else {
		by := record.StatusCounts{record.Open: -1}
		by[op.Status] = 1
		im.tasks.moveParts(tx, next.job, by, res)
	}
	if op.Status == record.Dead {
		return b.bury(tx, op, &next, res)
	}
	return nil
}

// record adds the result, failure and log of an attempt.
func (r *taskRows) record(task *taskRow, op *record.Settle) error {
	if op.Status == record.Succeeded && len(op.Result) > 0 {
		r.results = append(r.results, itemRow{task.seq, op.Result})
	}
	if op.Failure != nil {
		text, err := json.Marshal(op.Failure)
		if err != nil {
			return fmt.Errorf("encode a failure: %w", err)
		}
		r.failures = append(r.failures, failureRow{task.seq, string(text)})
	}
	task.suspect = task.suspect || op.Suspect
	if len(op.Log) > 0 || op.LogDropped > 0 {
		r.logs = append(r.logs, logRow{task.seq, task.idx, int64(op.Number), op.LogDropped, notNil(op.Log)})
	}
	return nil
}

// moveParts changes the sums of a job with several tasks, and reports in res when none is open any more.
func (r *taskRows) moveParts(tx *pgdb.Tx, job int64, by record.StatusCounts, res *record.OpResult) {
	sums := r.parts.Get(tx, job)
	if sums == nil {
		return
	}
	next := *sums
	for status, n := range by {
		next[status] += n
	}
	r.parts.Put(job, next)
	if next[record.Open] == 0 {
		res.JobEnded, res.Final = true, next
	}
}

// Read implements [pgdb.Member].
func (r *taskRows) Read(b *pgx.Batch) {
	r.rows.Read(b)
	r.parts.Read(b)
}

// Flush implements [pgdb.Member].
func (r *taskRows) Flush(b *pgx.Batch) error {
	var added, changed []taskRow
	for c := range r.rows.Changes() {
		switch {
		case c.Is == nil: // it goes with its job: see evictRows
		case c.Was == nil:
			added = append(added, *c.Is)
			if !c.Is.fresh() {
				changed = append(changed, *c.Is)
			}
		default:
			changed = append(changed, *c.Is)
		}
	}
	if len(added) > 0 {
		r.insert(b, added)
	}
	if len(changed) > 0 {
		r.update(b, changed)
	}
	r.flushParts(b)
	if len(r.results) > 0 {
		b.Queue(r.db.SQL("INSERT INTO jobhost.result (task, data) SELECT unnest($1::bigint[]), unnest($2::bytea[])"),
			column(r.results, func(i *itemRow) int64 { return i.task }), column(r.results, func(i *itemRow) []byte { return i.data }))
	}
	if len(r.failures) > 0 {
		b.Queue(r.db.SQL(`INSERT INTO jobhost.failure (task, record)
			SELECT task, record FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS t(task, record, n) ORDER BY n`),
			column(r.failures, func(f *failureRow) int64 { return f.task }), column(r.failures, func(f *failureRow) string { return f.record }))
	}
	if len(r.logs) > 0 {
		b.Queue(r.db.SQL(`INSERT INTO jobhost.log (task, idx, attempt, dropped, text)
			SELECT task, idx, attempt, dropped, text FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[])
			WITH ORDINALITY AS t(task, idx, attempt, dropped, text, n) ORDER BY n`),
			column(r.logs, func(l *logRow) int64 { return l.task }), column(r.logs, func(l *logRow) int64 { return l.idx }),
			column(r.logs, func(l *logRow) int64 { return l.attempt }), column(r.logs, func(l *logRow) int64 { return l.dropped }),
			column(r.logs, func(l *logRow) []byte { return l.text }))
	}
	return nil
}

// insert adds tasks as they are when their jobs are added. The key of a task is that of its job and its index.
func (r *taskRows) insert(b *pgx.Batch, tasks []taskRow) {
	number := func(of func(*taskRow) int64) []int64 { return column(tasks, of) }
	b.Queue(r.db.SQL(`INSERT INTO jobhost.task (`+taskColumns+`)
		SELECT seq, seq-idx, idx, tasks, worker, level, 0, 0, 0, ready_at, 0, 0, 0, 0, lane_group, deadline, retention_ms, 0, false, ''
		FROM (SELECT unnest($1::bigint[]) AS seq, unnest($2::bigint[]) AS idx, unnest($3::bigint[]) AS tasks, unnest($4::bigint[]) AS worker,
			unnest($5::bigint[]) AS level, unnest($6::bigint[]) AS ready_at, unnest($7::bigint[]) AS lane_group, unnest($8::bigint[]) AS deadline,
			unnest($9::bigint[]) AS retention_ms) t`),
		number(func(t *taskRow) int64 { return t.seq }), number(func(t *taskRow) int64 { return t.idx }),
		number(func(t *taskRow) int64 { return t.tasks }), number(func(t *taskRow) int64 { return t.worker }),
		number(func(t *taskRow) int64 { return t.level }), number(func(t *taskRow) int64 { return t.readyAt }),
		number(func(t *taskRow) int64 { return t.group }), number(func(t *taskRow) int64 { return t.deadline }),
		number(func(t *taskRow) int64 { return t.retention }))
}

// update writes what settlements change of tasks.
func (r *taskRows) update(b *pgx.Batch, tasks []taskRow) {
	number := func(of func(*taskRow) int64) []int64 { return column(tasks, of) }
	b.Queue(r.db.SQL(`UPDATE jobhost.task SET status=t.status, attempt=t.attempt, token=t.token, ready_at=t.ready_at, started_at=t.started_at,
			ended_at=t.ended_at, result_size=t.result_size, fuel=t.fuel, expires_at=t.expires_at, suspect=t.suspect, ref=t.ref
		FROM (SELECT unnest($1::bigint[]) AS seq, unnest($2::smallint[]) AS status, unnest($3::bigint[]) AS attempt, unnest($4::bigint[]) AS token,
			unnest($5::bigint[]) AS ready_at, unnest($6::bigint[]) AS started_at, unnest($7::bigint[]) AS ended_at,
			unnest($8::bigint[]) AS result_size, unnest($9::bigint[]) AS fuel, unnest($10::bigint[]) AS expires_at,
			unnest($11::boolean[]) AS suspect, unnest($12::text[]) AS ref) t WHERE task.seq=t.seq`),
		number(func(t *taskRow) int64 { return t.seq }), column(tasks, func(t *taskRow) int16 { return int16(t.status) }),
		number(func(t *taskRow) int64 { return t.attempt }), number(func(t *taskRow) int64 { return t.token }),
		number(func(t *taskRow) int64 { return t.readyAt }), number(func(t *taskRow) int64 { return t.startedAt }),
		number(func(t *taskRow) int64 { return t.endedAt }), number(func(t *taskRow) int64 { return t.resultSize }),
		number(func(t *taskRow) int64 { return t.fuel }), number(func(t *taskRow) int64 { return t.expiresAt }),
		column(tasks, func(t *taskRow) bool { return t.suspect }), column(tasks, func(t *taskRow) string { return t.ref })).
		Exec(expect(len(tasks), "tasks"))
}

// expect checks that a statement changed n rows. If it did not, the image differs from the database.
func expect(n int, rows string) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(n) {
			return fmt.Errorf("%d %s were to be changed, and %d are there", n, rows, tag.RowsAffected())
		}
		return nil
	}
}

func (r *taskRows) flushParts(b *pgx.Batch) {
	var jobs []int64
	var sums []record.StatusCounts
	for c := range r.parts.Changes() {
		if c.Is != nil { // otherwise it goes with its job
			jobs, sums = append(jobs, c.Key), append(sums, *c.Is)
		}
	}
	if len(jobs) == 0 {
		return
	}
	of := func(status record.Status) []int64 {
		return column(sums, func(n *record.StatusCounts) int64 { return n[status] })
	}
	b.Queue(r.db.SQL(`INSERT INTO jobhost.part (job, open, succeeded, dead, cancelled)
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) ON CONFLICT (job) DO UPDATE
		SET open=excluded.open, succeeded=excluded.succeeded, dead=excluded.dead, cancelled=excluded.cancelled`),
		jobs, of(record.Open), of(record.Succeeded), of(record.Dead), of(record.Cancelled))
}

func (r *taskRows) forget() {
	clear(r.results)
	clear(r.logs)
	r.results, r.failures, r.logs = r.results[:0], r.failures[:0], r.logs[:0]
}

// Flushed implements [pgdb.Member].
func (r *taskRows) Flushed() {
	r.rows.Flushed()
	r.parts.Flushed()
	r.forget()
}

// AfterCommit implements [pgdb.Member].
func (r *taskRows) AfterCommit() {
	r.rows.AfterCommit()
	r.parts.AfterCommit()
	r.forget()
}

// AfterRollback implements [pgdb.Member].
func (r *taskRows) AfterRollback() {
	r.rows.AfterRollback()
	r.parts.AfterRollback()
	r.forget()
}
