package pgqueue

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/pgdb"
)

// evictRows are the jobs that evictions look at, and those that they remove. It is a [pgdb.Member].
type evictRows struct {
	db *pgdb.DB
	// lists and single are kept for one commit only, since the next one may change the rows.
	lists  pgdb.Table[listKey, []victim]
	single pgdb.Table[int64, victim]  // by the key of the job
	gone   pgdb.Table[struct{}, bool] // whether there are references or states that are gone

	// cursors are the keys from which evictions start, by worker: the dead tasks below are steps of workflows. At the end
	// they start from the beginning again.
	cursors map[int64]int64
	moved   map[int64]int64 // cursors that this commit has moved

	// Of this commit, not flushed yet:
	candidates map[int64]*candidates // by worker
	removed    []*victim
	ids        map[string]bool // of those
}

// listKey stands for the first n jobs of a worker with dead tasks, from a key on.
type listKey struct{ worker, from, n int64 }

// victim is a job with dead tasks, as the database has it.
type victim struct {
	Key, Tasks                       int64
	Open, Succeeded, Dead, Cancelled int64 // tasks, if it has several
	ID, Options                      string
	Tells                            bool   // it has references or states
	Unique                           string `json:"uniq"`
	Parent                           string
	ParentKey                        int64 `json:"parent_key"`

	unread    bool // nothing but its key is known
	unflushed bool // the database doesn't have it
}

// end is the first key after those of its tasks.
func (v *victim) end() int64 { return v.Key + v.Tasks }

// victimOf selects a job by its key t.job. It does not look at all tasks of a job that is open.
const victimOf = `SELECT j.seq AS key, j.tasks, coalesce(p.open, 0) AS open, coalesce(p.succeeded, 0) AS succeeded,
		coalesce(p.dead, 0) AS dead, coalesce(p.cancelled, 0) AS cancelled, j.id, j.options,
		j.ref<>'' OR EXISTS(SELECT FROM jobhost.states_noted n WHERE n.id=j.id) OR p.open=0 AND
			EXISTS(SELECT FROM jobhost.task r WHERE r.seq>=j.seq AND r.seq<j.seq+j.tasks AND r.ref<>'') AS tells,
		coalesce((SELECT name FROM jobhost.uniq u WHERE u.job=j.seq LIMIT 1), '') AS uniq,
		coalesce(c.parent, '') AS parent, coalesce(c.parent_key, 0) AS parent_key
	FROM jobhost.job j LEFT JOIN jobhost.part p ON p.job=j.seq LEFT JOIN jobhost.child c ON c.job=j.seq WHERE j.seq=t.job OFFSET 0`

func (r *evictRows) init(db *pgdb.DB) {
	r.db = db
	r.cursors, r.moved, r.candidates, r.ids = map[int64]int64{}, map[int64]int64{}, map[int64]*candidates{}, map[string]bool{}
	r.lists = pgdb.Table[listKey, []victim]{
		DB: db,
		// Only the first dead task of each job is read.
		SQL: `SELECT k.worker, k.low, k.n, coalesce((SELECT json_agg(v) FROM (
				WITH RECURSIVE look(job, tasks, n) AS (
					(SELECT job, tasks, 1::bigint FROM jobhost.task WHERE worker=k.worker AND status=2 AND seq>=k.low ORDER BY seq LIMIT 1)
					UNION ALL
					SELECT t.job, t.tasks, look.n+1 FROM look, LATERAL (SELECT job, tasks FROM jobhost.task
						WHERE worker=k.worker AND status=2 AND seq>=look.job+look.tasks ORDER BY seq LIMIT 1) AS t WHERE look.n<k.n)
				SELECT v.* FROM look t CROSS JOIN LATERAL (` + victimOf + `) v ORDER BY t.n) v), '[]')
			FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS k(worker, low, n)`,
		Args: func(keys []listKey) []any {
			of := func(of func(*listKey) int64) []int64 { return column(keys, of) }
			return []any{
				of(func(k *listKey) int64 { return k.worker }), of(func(k *listKey) int64 { return k.from }), of(func(k *listKey) int64 { return k.n }),
			}
		},
		Scan: func(rows pgx.Rows) (k listKey, list []victim, err error) {
			err = rows.Scan(&k.worker, &k.from, &k.n, &list)
			return k, list, err
		},
	}
	r.single = pgdb.Table[int64, victim]{
		DB: db, SQL: `SELECT t.job, to_json(v) FROM unnest($1::bigint[]) AS t(job) CROSS JOIN LATERAL (` + victimOf + `) v`,
		Args: func(keys []int64) []any { return []any{keys} },
		Scan: func(rows pgx.Rows) (key int64, v victim, err error) {
			err = rows.Scan(&key, &v)
			return key, v, err
		},
	}
	r.gone = pgdb.Table[struct{}, bool]{
		DB: db, SQL: "SELECT EXISTS(SELECT FROM jobhost.object_gone) OR EXISTS(SELECT FROM jobhost.states_gone)",
		Args: func([]struct{}) []any { return nil },
		Scan: func(rows pgx.Rows) (_ struct{}, gone bool, err error) { return struct{}{}, gone, rows.Scan(&gone) },
	}
}

// cursor returns the key from which the eviction of a worker's jobs starts.
func (r *evictRows) cursor(worker int64) int64 {
	if at, moved := r.moved[worker]; moved {
		return at
	}
	return r.cursors[worker]
}

// add notes that a job is removed.
func (r *evictRows) add(v *victim) {
	r.removed = append(r.removed, v)
	r.ids[v.ID] = true
	if v.Tells {
		r.gone.Put(struct{}{}, true)
	}
}

// tables are those whose rows are read.
func (r *evictRows) tables() []table { return []table{&r.lists, &r.single, &r.gone} }

// Read implements [pgdb.Member].
func (r *evictRows) Read(b *pgx.Batch) {
	for _, t := range r.tables() {
		t.Read(b)
	}
}

// Flush implements [pgdb.Member]. It has to come after the other parts of the image, which may write rows of the jobs.
func (r *evictRows) Flush(b *pgx.Batch) error {
	if len(r.removed) == 0 {
		return nil
	}
	want := len(r.removed)
	b.Queue(r.db.SQL(removeEvicted), column(r.removed, func(v **victim) int64 { return (*v).Key }),
		column(r.removed, func(v **victim) int64 { return (*v).end() }),
		column(r.removed, func(v **victim) string { return (*v).ID })).QueryRow(func(row pgx.Row) error {
		var n int
		if err := row.Scan(&n); err != nil {
			return err
		}
		if n != want {
			return fmt.Errorf("%d jobs were to be removed, and %d are there", want, n)
		}
		return nil
	})
	return nil
}

// removeEvicted does for evicted jobs what remove does for others. The planner takes ranges of keys for large parts of a table,
// so what they find is passed on in arrays: otherwise each row would be compared with each other.
const removeEvicted = `WITH r AS (SELECT * FROM unnest($1::bigint[], $2::bigint[]) AS t(low, high)),
	jobs AS (DELETE FROM jobhost.job USING r WHERE seq>=r.low AND seq<r.high RETURNING id, ref),
	parts AS (DELETE FROM jobhost.part USING r WHERE job>=r.low AND job<r.high),
	children AS (DELETE FROM jobhost.child USING r WHERE job>=r.low AND job<r.high),
	labels AS (DELETE FROM jobhost.label USING r WHERE job>=r.low AND job<r.high),
	uniqs AS (DELETE FROM jobhost.uniq USING r WHERE job>=r.low AND job<r.high),
	tasks AS (DELETE FROM jobhost.task USING r WHERE seq>=r.low AND seq<r.high RETURNING ref),
	results AS (DELETE FROM jobhost.result USING r WHERE task>=r.low AND task<r.high),
	failures AS (DELETE FROM jobhost.failure USING r WHERE task>=r.low AND task<r.high),
	logs AS (DELETE FROM jobhost.log USING r WHERE task>=r.low AND task<r.high),
	items AS (DELETE FROM jobhost.item USING r WHERE task>=r.low AND task<r.high),
	letters AS (DELETE FROM jobhost.dead USING r WHERE task>=r.low AND task<r.high),
	refs AS (SELECT ref FROM jobs WHERE ref<>'' UNION SELECT ref FROM tasks WHERE ref<>''),
	live AS (DELETE FROM jobhost.object WHERE ref=ANY(ARRAY(SELECT ref FROM refs))),
	gone AS (INSERT INTO jobhost.object_gone (ref) SELECT ref FROM refs ON CONFLICT DO NOTHING),
	noted AS (DELETE FROM jobhost.states_noted WHERE id=ANY($3) RETURNING id),
	states AS (INSERT INTO jobhost.states_gone (id) SELECT id FROM noted ON CONFLICT DO NOTHING)
	SELECT count(*) FROM jobs`

func (r *evictRows) forget() {
	clear(r.candidates)
	clear(r.ids)
	clear(r.removed)
	r.removed = r.removed[:0]
}

// Flushed implements [pgdb.Member].
func (r *evictRows) Flushed() {
	for _, t := range r.tables() {
		t.Flushed()
	}
	r.forget()
}

// AfterCommit implements [pgdb.Member].
func (r *evictRows) AfterCommit() {
	r.gone.AfterCommit()
	r.lists.Flushed()
	r.single.Flushed()
	for worker, at := range r.moved {
		r.cursors[worker] = at
	}
	clear(r.moved)
	r.forget()
}

// AfterRollback implements [pgdb.Member].
func (r *evictRows) AfterRollback() {
	for _, t := range r.tables() {
		t.AfterRollback()
	}
	clear(r.moved)
	r.forget()
}
