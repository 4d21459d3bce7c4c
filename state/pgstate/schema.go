package pgstate

import "github.com/jobhost/jobhost/internal/pgdb"

// Schemas returns the tables of states.
func Schemas() []pgdb.Schema {
	return []pgdb.Schema{{Name: "state", Steps: []string{schema1}}}
}

// schema1 has the tables of package sqlitestate, whose schema says what they are for. Times are in microseconds since
// 1970, 0 = none. Texts are "" rather than NULL. A payload is JSON as its writer spelled it.
//
// States are rewritten all the time, so their pages leave room for new versions beside the old ones, and nothing that
// changes is in an index.
const schema1 = `
CREATE TABLE jobhost.state_job (
	name       text COLLATE "C" PRIMARY KEY,
	id         bigint NOT NULL,
	tasks      bigint NOT NULL,
	states     bigint NOT NULL,
	created_at bigint NOT NULL,
	changed_at bigint NOT NULL,
	deleted_at bigint NOT NULL
) WITH (fillfactor=50);
CREATE TABLE jobhost.state (
	job            bigint,
	task           bigint,
	tag            text COLLATE "C",
	status         bigint NOT NULL,
	version        bigint NOT NULL,
	at             bigint NOT NULL,
	event_id       text NOT NULL,
	schema_version bigint NOT NULL,
	message        text NOT NULL,
	payload        bytea NOT NULL,
	PRIMARY KEY (job, task, tag)
) WITH (fillfactor=50)`
