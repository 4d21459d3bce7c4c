package sqlitestate

import "github.com/jobhost/jobhost/internal/sqlitedb"

// Schemas returns the tables of states.
func Schemas() []sqlitedb.Schema { return []sqlitedb.Schema{{Name: "state", Steps: []string{schema1}}} }

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
