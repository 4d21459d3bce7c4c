package pgqueue

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

const (
	// deathMemory is how long deaths are counted.
	deathMemory = 90 * 24 * time.Hour
	// deathKinds bounds the rows that a worker gets for one hour, since guests choose their codes.
	deathKinds = 200
)

// deadRows are the dead letters of the commit in the making that were not flushed. It is a [pgdb.Member].
type deadRows struct {
	db      *pgdb.DB
	letters []letterRow
}

type letterRow struct {
	task, job, tasks, worker          int64 // job is the key of the task's job, which has so many tasks
	diedAt, attempts                  int64
	category, code, severity, message string
}

// bury makes a dead letter of a task that died, for which another job may have to go.
func (b *batch) bury(tx *pgdb.Tx, op *record.Settle, task *taskRow, res *record.OpResult) error {
	im := b.image
	var f jobhost.Failure
	if op.Failure != nil {
		f = *op.Failure
	}
	im.letters.letters = append(im.letters.letters, letterRow{
		task: int64(op.Key), job: task.job, tasks: task.tasks, worker: task.worker, diedAt: int64(op.EndedAt), attempts: int64(op.Attempt),
		category: shown(string(f.Category)), code: shown(f.Code), severity: shown(string(f.Severity)), message: shown(f.Message),
	})
	if op.MaxDead == 0 || im.dead.n[task.worker] <= int64(op.MaxDead) {
		return nil
	}
	err := im.evict(tx, task.worker, task.job, int64(op.MaxDead), res)
	res.Gone = err == nil && len(res.Evicted) > 0 && im.anyGone(tx)
	return err
}

// shown makes a text of a guest one that the server takes: without NUL, and in UTF-8.
func shown(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}

// Read implements [pgdb.Member].
func (r *deadRows) Read(*pgx.Batch) {}

// Flush implements [pgdb.Member].
func (r *deadRows) Flush(b *pgx.Batch) error {
	if len(r.letters) == 0 {
		return nil
	}
	number := func(of func(*letterRow) int64) []int64 { return column(r.letters, of) }
	text := func(of func(*letterRow) string) []string { return column(r.letters, of) }
	workers, codes := number(func(l *letterRow) int64 { return l.worker }), text(func(l *letterRow) string { return l.code })
	categories := text(func(l *letterRow) string { return l.category })
	b.Queue(r.db.SQL(`INSERT INTO jobhost.dead (task, worker, died_at, revived_at, attempts, category, code, severity, message)
		SELECT task, worker, died_at, 0, attempts, category, code, severity, message
		FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[])
		AS t(task, worker, died_at, attempts, category, code, severity, message)
		ON CONFLICT (task) DO UPDATE SET died_at=excluded.died_at, revived_at=0, attempts=excluded.attempts,
			category=excluded.category, code=excluded.code, severity=excluded.severity, message=excluded.message`),
		number(func(l *letterRow) int64 { return l.task }), workers, number(func(l *letterRow) int64 { return l.diedAt }),
		number(func(l *letterRow) int64 { return l.attempts }), categories, codes,
		text(func(l *letterRow) string { return l.severity }), text(func(l *letterRow) string { return l.message }))
	b.Queue(r.db.SQL(countDeaths), number(func(l *letterRow) int64 { return int64(record.Millis(l.diedAt).Hour()) }),
		workers, categories, codes, deathKinds, jobhost.OtherCodes)
	return nil
}

// countDeaths counts deaths by hour, worker, category and code. A code that is new is put to the others when the worker
// has enough kinds in that hour, with the ones that are new here and came before it.
const countDeaths = `INSERT INTO jobhost.death AS d (hour, worker, category, code, n)
	SELECT hour, worker, category, CASE WHEN there OR rank<=$5 THEN code ELSE $6 END AS kind, sum(n)
	FROM (
		SELECT t.*, d.n IS NOT NULL AS there, row_number() OVER (PARTITION BY t.hour, t.worker, d.n IS NOT NULL ORDER BY t.nr)
			+(SELECT count(*) FROM jobhost.death o WHERE o.hour=t.hour AND o.worker=t.worker) AS rank
		FROM (SELECT hour, worker, category, code, count(*) AS n, min(nr) AS nr
			FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY AS u(hour, worker, category, code, nr)
			GROUP BY hour, worker, category, code) AS t
		LEFT JOIN jobhost.death d ON d.hour=t.hour AND d.worker=t.worker AND d.category=t.category AND d.code=t.code
	) AS t GROUP BY hour, worker, category, kind
	ON CONFLICT (hour, worker, category, code) DO UPDATE SET n=d.n+excluded.n`

// Flushed implements [pgdb.Member].
func (r *deadRows) Flushed() {
	clear(r.letters)
	r.letters = r.letters[:0]
}

// AfterCommit implements [pgdb.Member].
func (r *deadRows) AfterCommit() { r.Flushed() }

// AfterRollback implements [pgdb.Member].
func (r *deadRows) AfterRollback() { r.Flushed() }

// deadCounts are the numbers of dead tasks by worker, so that a death need not ask for it.
type deadCounts struct {
	n  map[int64]int64
	by map[int64]int64 // what the commit in the making has changed
}

// load reads the numbers of a database.
func (c *deadCounts) load(s *pgdb.Session) error {
	c.n, c.by = map[int64]int64{}, map[int64]int64{}
	var worker, n int64
	return s.Each([]any{&worker, &n}, func() error {
		c.n[worker] = n
		return nil
	}, "SELECT worker, n FROM jobhost.tally WHERE status=$1", int64(record.Dead))
}

func (c *deadCounts) add(worker, n int64) {
	c.n[worker] += n
	c.by[worker] += n
}

func (c *deadCounts) keep() { clear(c.by) }

func (c *deadCounts) undo() {
	for worker, n := range c.by {
		c.n[worker] -= n
	}
	clear(c.by)
}
