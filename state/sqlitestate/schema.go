package sqlitestate

import (
	"fmt"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state"
)

// Schemas returns the tables of states.
func Schemas() []sqlitedb.Schema {
	return []sqlitedb.Schema{{Name: "state", Steps: []string{schema1, schemaSum}, Check: check, Mend: mend}}
}

// mend puts right what follows from states and their jobs of which a repair has left
// some out. States without their job would be those of the next one that gets its id.
func mend(q sqlitedb.Querier) error {
	for _, sql := range []string{
		"DELETE FROM state WHERE job NOT IN (SELECT id FROM state_job)",
		"UPDATE state_job SET states=(SELECT count(*) FROM state WHERE state.job=state_job.id)",
	} {
		if err := q.Stmt(sql).Exec(); err != nil {
			return fmt.Errorf("%w: %s", err, sql)
		}
	}
	return nil
}

// schema1 is the first version. Times are in microseconds since 1970, 0 = none.
//
// state_job has a row for each job, by its key, with sums of state that are
// written once in a transaction. Its id is never given out twice in the life of a
// process, so rows of state can't be taken for those of a job deleted before.
//
// Both tables are trees by their keys and nothing else: a state is one entry in
// one place, and those of a job lie side by side.
const schema1 = `
CREATE TABLE state_job(
	name       TEXT PRIMARY KEY,
	id         INTEGER NOT NULL,
	tasks      INTEGER NOT NULL,
	states     INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	changed_at INTEGER NOT NULL,
	deleted_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE state(
	job            INTEGER NOT NULL,
	task           INTEGER NOT NULL,
	tag            TEXT NOT NULL,
	status         INTEGER NOT NULL,
	version        INTEGER NOT NULL,
	at             INTEGER NOT NULL,
	event_id       TEXT NOT NULL,
	schema_version INTEGER NOT NULL,
	message        TEXT,
	payload        TEXT,
	PRIMARY KEY(job, task, tag)
) WITHOUT ROWID`

// schemaSum gives states their checksums. Those that were written before have none.
const schemaSum = `ALTER TABLE state ADD COLUMN sum INTEGER`

// sumOf is the checksum of a state: see [sqlitedb.Sum]. id is that of its job's row.
func sumOf(id int64, st *state.State, at int64) int64 {
	s := sqlitedb.SumOf("state")
	s.Int(id).Int(int64(st.TaskID)).Text(st.Tag).Int(int64(st.Status)).Int(st.Version).Int(at).
		Text(st.EventID).Int(int64(st.SchemaVersion)).Text(st.Message).Text(string(st.Payload))
	return s.Value()
}

// check goes through all states, and calls found for each that is not what was written.
func check(q sqlitedb.Querier, found func(error)) error {
	s := q.Stmt("SELECT " + columns + ", job FROM state")
	for s.Step() {
		id := s.ColInt(10)
		if _, err := scan(s, "", id); err != nil {
			_, err = scan(s, jobOf(q, id), id)
			found(err)
		}
	}
	if err := s.Done(); err != nil {
		return fmt.Errorf("check states: %w", err)
	}
	return nil
}

// jobOf returns the key of a job by the id of its row. There is no index for that.
func jobOf(q sqlitedb.Querier, id int64) (name string) {
	s := q.Stmt("SELECT name FROM state_job WHERE id=?").Int(id)
	if s.Step() {
		name = s.ColText(0)
	}
	_ = s.Done() // it is for an error that matters more
	return name
}
