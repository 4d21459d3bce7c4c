package pgstate

import (
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/follow"
)

// image is the rows that the writer keeps in memory. Only the writer uses it. It is a [pgdb.Member].
type image struct {
	db *pgdb.DB
	*follow.Ledger
	rows pgdb.Table[stateKey, stateRow]
	// whole are states in full, to answer writes that are repeated.
	whole pgdb.Table[stateKey, state.State]
	// runs are the rows of jobs that are removed, kept for one commit only.
	runs pgdb.Table[string, runRows]
	gone runRows // what was removed and not flushed
}

// stateKey names a state by the id of its job's row.
type stateKey struct {
	job  int64
	task int
	tag  string
}

// stateRow is the last write of a state.
type stateRow struct {
	version int64
	event   string
	state   *state.State // only of a row that is to be written
}

func newImage(db *pgdb.DB) *image {
	const of = ` FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS t(job, task, tag)
		JOIN jobhost.state s ON s.job=t.job AND s.task=t.task AND s.tag=t.tag`
	m := &image{
		db: db,
		rows: pgdb.Table[stateKey, stateRow]{
			DB: db, SQL: "SELECT s.job, s.task, s.tag, s.version, s.event_id" + of, Args: keyArgs,
			Scan: func(rows pgx.Rows) (key stateKey, r stateRow, err error) {
				err = rows.Scan(&key.job, &key.task, &key.tag, &r.version, &r.event)
				return key, r, err
			},
		},
		whole: pgdb.Table[stateKey, state.State]{
			DB: db, SQL: "SELECT s.job, " + columns + of, Args: keyArgs,
			Scan: func(rows pgx.Rows) (key stateKey, st state.State, err error) {
				st, err = scan(rows, &key.job)
				key.task, key.tag = st.TaskID, st.Tag
				return key, st, err
			},
		},
	}
	m.initRuns()
	return m
}

func keyArgs(keys []stateKey) []any {
	return []any{
		column(keys, func(k *stateKey) int64 { return k.job }), column(keys, func(k *stateKey) int64 { return int64(k.task) }),
		column(keys, func(k *stateKey) string { return k.tag }),
	}
}

// columns are what scan reads, after other columns.
const columns = "s.task, s.tag, s.status, s.version, s.at, s.event_id, s.schema_version, s.message, s.payload"

// scan returns the state in a row, without its job.
func scan(rows pgx.Rows, before ...any) (st state.State, err error) {
	var at int64
	var payload []byte
	err = rows.Scan(append(before, &st.TaskID, &st.Tag, &st.Status, &st.Version, &at, &st.EventID, &st.SchemaVersion, &st.Message, &payload)...)
	st.Timestamp = follow.Time(at)
	if len(payload) > 0 {
		st.Payload = payload
	}
	return st, err
}

// column returns a column of some rows, as an argument of a statement that writes them all.
func column[R, T any](rows []R, of func(*R) T) []T {
	list := make([]T, len(rows))
	for i := range rows {
		list[i] = of(&rows[i])
	}
	return list
}

// Read implements [pgdb.Member].
func (m *image) Read(b *pgx.Batch) {
	m.rows.Read(b)
	m.whole.Read(b)
	m.runs.Read(b)
}

// Flush implements [pgdb.Member].
func (m *image) Flush(b *pgx.Batch) error {
	m.flushJobs(b)
	var added, changed []pgdb.RowChange[stateKey, stateRow]
	for c := range m.rows.Changes() {
		if c.Was == nil {
			added = append(added, c)
		} else {
			changed = append(changed, c)
		}
	}
	if len(added) > 0 {
		b.Queue(m.db.SQL(`INSERT INTO jobhost.state (job, task, tag, status, version, at, event_id, schema_version, message, payload)
			SELECT * FROM `+unnested), stateArgs(added)...)
	}
	if len(changed) > 0 {
		b.Queue(m.db.SQL(`UPDATE jobhost.state s SET status=t.status, version=t.version, at=t.at, event_id=t.event_id,
				schema_version=t.schema_version, message=t.message, payload=t.payload
			FROM `+unnested+` AS t(job, task, tag, status, version, at, event_id, schema_version, message, payload)
			WHERE s.job=t.job AND s.task=t.task AND s.tag=t.tag`), stateArgs(changed)...).Exec(expect(len(changed), "states"))
	}
	m.flushGone(b)
	return nil
}

const unnested = `unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[], $9::text[], $10::bytea[])`

// stateArgs are the arguments of a statement that writes states.
func stateArgs(changes []pgdb.RowChange[stateKey, stateRow]) []any {
	number := func(of func(*state.State) int64) []int64 {
		return column(changes, func(c *pgdb.RowChange[stateKey, stateRow]) int64 { return of(c.Is.state) })
	}
	text := func(of func(*state.State) string) []string {
		return column(changes, func(c *pgdb.RowChange[stateKey, stateRow]) string { return of(c.Is.state) })
	}
	return append(keyArgs(column(changes, func(c *pgdb.RowChange[stateKey, stateRow]) stateKey { return c.Key })),
		number(func(s *state.State) int64 { return int64(s.Status) }), number(func(s *state.State) int64 { return s.Version }),
		number(func(s *state.State) int64 { return s.Timestamp.UnixMicro() }), text(func(s *state.State) string { return s.EventID }),
		number(func(s *state.State) int64 { return int64(s.SchemaVersion) }), text(func(s *state.State) string { return s.Message }),
		column(changes, func(c *pgdb.RowChange[stateKey, stateRow]) []byte {
			return append([]byte{}, c.Is.state.Payload...) // never nil, which would be NULL
		}))
}

// flushJobs writes the sums of jobs.
func (m *image) flushJobs(b *pgx.Batch) {
	var added, changed []follow.Sum
	for _, sum := range m.Sums() {
		if sum.New {
			added = append(added, sum)
		} else {
			changed = append(changed, sum)
		}
	}
	names := func(sums []follow.Sum) []string {
		return column(sums, func(s *follow.Sum) string { return s.Job.Key() })
	}
	numbers := func(sums []follow.Sum, of func(*follow.Sum) int64) []int64 { return column(sums, of) }
	if len(added) > 0 {
		b.Queue(m.db.SQL(`INSERT INTO jobhost.state_job (name, id, tasks, states, created_at, changed_at, deleted_at)
			SELECT name, id, tasks, added, at, at, 0 FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
			AS t(name, id, tasks, added, at)`),
			names(added), numbers(added, func(s *follow.Sum) int64 { return s.ID }), numbers(added, func(s *follow.Sum) int64 { return int64(s.Tasks) }),
			numbers(added, func(s *follow.Sum) int64 { return s.Added }), numbers(added, func(s *follow.Sum) int64 { return s.Changed }))
	}
	if len(changed) > 0 {
		b.Queue(m.db.SQL(`UPDATE jobhost.state_job j SET states=states+added, changed_at=at
			FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS t(name, added, at) WHERE j.name=t.name`),
			names(changed), numbers(changed, func(s *follow.Sum) int64 { return s.Added }),
			numbers(changed, func(s *follow.Sum) int64 { return s.Changed })).Exec(expect(len(changed), "jobs with states"))
	}
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

// Flushed implements [pgdb.Member].
func (m *image) Flushed() {
	m.rows.Flushed()
	m.whole.Flushed()
	m.runs.Flushed()
	m.gone = runRows{}
	m.Written()
}

// AfterCommit implements [pgdb.Member].
func (m *image) AfterCommit() {
	for c := range m.rows.Changes() {
		c.Is.state = nil // it is not needed any more
	}
	m.rows.AfterCommit()
	m.whole.Flushed()
	m.runs.Flushed()
	m.gone = runRows{}
	m.Ledger.AfterCommit()
}

// AfterRollback implements [pgdb.Member].
func (m *image) AfterRollback() {
	m.rows.AfterRollback()
	m.whole.AfterRollback()
	m.runs.AfterRollback()
	m.gone = runRows{}
	m.Ledger.AfterRollback()
}
