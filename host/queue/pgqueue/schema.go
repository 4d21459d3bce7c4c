package pgqueue

import "github.com/jobhost/jobhost/internal/pgdb"

// Schemas returns the tables of the queue and of what jobs leave behind.
func Schemas() []pgdb.Schema {
	return []pgdb.Schema{
		{Name: "queue", Steps: []string{queueSchema, slotsSchema}},
		{Name: "effects", Steps: []string{effectsSchema}},
		{Name: "schedule", Steps: []string{scheduleSchema}},
		{Name: "workflow", Steps: []string{workflowSchema}},
		{Name: "inbox", Steps: []string{inboxSchema}},
	}
}

// queueSchema has the tables of package sqlitequeue, whose schema says what each is for, with the types of this
// database. Texts are compared byte by byte. No text is NULL: an empty one is "".
//
// PostgreSQL keeps old versions of rows until no snapshot needs them, so tables that are rewritten all the time leave room
// in their pages, and have what is rewritten in no index. Nothing looks for tasks but a host that begins to lead: dead
// versions slow nothing down.
const queueSchema = `
CREATE TABLE jobhost.worker (id bigint PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE);
CREATE TABLE jobhost.job (
	seq          bigint PRIMARY KEY,
	id           text COLLATE "C" NOT NULL UNIQUE,
	worker       bigint NOT NULL,
	tasks        bigint NOT NULL,
	priority     bigint NOT NULL,
	max_attempts bigint NOT NULL,
	timeout_ns   bigint NOT NULL,
	created_at   bigint NOT NULL,
	ready_at     bigint NOT NULL,
	digest       bytea NOT NULL,
	entry        text NOT NULL,
	content_type text NOT NULL,
	labels       text NOT NULL,
	options      text NOT NULL,
	ref          text COLLATE "C" NOT NULL,
	payload      bytea NOT NULL
);
ALTER TABLE jobhost.job ALTER payload SET STORAGE EXTERNAL;
CREATE TABLE jobhost.task (
	seq          bigint PRIMARY KEY,
	job          bigint NOT NULL,
	idx          bigint NOT NULL,
	tasks        bigint NOT NULL,
	worker       bigint NOT NULL,
	level        bigint NOT NULL,
	status       smallint NOT NULL,
	attempt      bigint NOT NULL,
	token        bigint NOT NULL,
	ready_at     bigint NOT NULL,
	started_at   bigint NOT NULL,
	ended_at     bigint NOT NULL,
	result_size  bigint NOT NULL,
	fuel         bigint NOT NULL,
	lane_group   bigint NOT NULL,
	deadline     bigint NOT NULL,
	retention_ms bigint NOT NULL,
	expires_at   bigint NOT NULL,
	suspect      boolean NOT NULL,
	ref          text COLLATE "C" NOT NULL
) WITH (fillfactor=80);
CREATE INDEX task_open ON jobhost.task (worker, ready_at, seq) WHERE status=0;
CREATE INDEX task_list ON jobhost.task (worker, status, seq);
CREATE TABLE jobhost.part (
	job       bigint PRIMARY KEY,
	open      bigint NOT NULL,
	succeeded bigint NOT NULL,
	dead      bigint NOT NULL,
	cancelled bigint NOT NULL
) WITH (fillfactor=50);
CREATE TABLE jobhost.item (task bigint PRIMARY KEY, data bytea NOT NULL);
ALTER TABLE jobhost.item ALTER data SET STORAGE EXTERNAL;
CREATE TABLE jobhost.result (task bigint PRIMARY KEY, data bytea NOT NULL);
ALTER TABLE jobhost.result ALTER data SET STORAGE EXTERNAL;
CREATE TABLE jobhost.failure (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task bigint NOT NULL, record text NOT NULL);
CREATE INDEX failure_task ON jobhost.failure (task);
CREATE TABLE jobhost.log (
	seq     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	task    bigint NOT NULL,
	idx     bigint NOT NULL,
	attempt bigint NOT NULL,
	dropped bigint NOT NULL,
	text    bytea NOT NULL
);
CREATE INDEX log_task ON jobhost.log (task);
CREATE TABLE jobhost.counter (worker bigint, status smallint, n bigint NOT NULL, PRIMARY KEY (worker, status)) WITH (fillfactor=10);
CREATE TABLE jobhost.span (block bigint PRIMARY KEY, low bigint NOT NULL, high bigint NOT NULL, due bigint NOT NULL) WITH (fillfactor=50);
CREATE INDEX span_due ON jobhost.span (due) WHERE due>0;
CREATE TABLE jobhost.sequence (id bigint PRIMARY KEY, next bigint NOT NULL) WITH (fillfactor=10);
INSERT INTO jobhost.sequence VALUES (1, 1);
CREATE TABLE jobhost.note (name text COLLATE "C" PRIMARY KEY, text text NOT NULL);
CREATE TABLE jobhost.label (
	name  text COLLATE "C",
	value text COLLATE "C",
	job   bigint,
	PRIMARY KEY (name, value, job)
);
CREATE INDEX label_job ON jobhost.label (job);
CREATE TABLE jobhost.uniq (worker bigint, name text COLLATE "C", job bigint NOT NULL, until bigint NOT NULL, PRIMARY KEY (worker, name));
CREATE INDEX uniq_job ON jobhost.uniq (job);
CREATE TABLE jobhost.object (ref text COLLATE "C" PRIMARY KEY);
CREATE TABLE jobhost.object_gone (ref text COLLATE "C" PRIMARY KEY);
CREATE TABLE jobhost.states_noted (id text COLLATE "C" PRIMARY KEY);
CREATE TABLE jobhost.states_gone (id text COLLATE "C" PRIMARY KEY);
CREATE TABLE jobhost.dead (
	task       bigint PRIMARY KEY,
	worker     bigint NOT NULL,
	died_at    bigint NOT NULL,
	revived_at bigint NOT NULL,
	attempts   bigint NOT NULL,
	category   text COLLATE "C" NOT NULL,
	code       text COLLATE "C" NOT NULL,
	severity   text NOT NULL,
	message    text NOT NULL
);
CREATE INDEX dead_time ON jobhost.dead (died_at, task);
CREATE INDEX dead_worker ON jobhost.dead (worker, died_at, task);
CREATE INDEX dead_code ON jobhost.dead (code, died_at, task);
CREATE INDEX dead_category ON jobhost.dead (category, died_at, task);
CREATE TABLE jobhost.death (
	hour     bigint,
	worker   bigint,
	category text COLLATE "C",
	code     text COLLATE "C",
	n        bigint NOT NULL,
	PRIMARY KEY (hour, worker, category, code)
)`

// slotsSchema spreads each count over several rows: see counterSlots. Tally has the counts.
const slotsSchema = `
ALTER TABLE jobhost.counter ADD COLUMN slot smallint NOT NULL DEFAULT 0;
ALTER TABLE jobhost.counter DROP CONSTRAINT counter_pkey;
ALTER TABLE jobhost.counter ADD PRIMARY KEY (worker, status, slot);
CREATE VIEW jobhost.tally AS SELECT worker, status, sum(n)::bigint AS n FROM jobhost.counter GROUP BY worker, status`

// effectsSchema holds what attempts leave behind besides their results.
const effectsSchema = `
CREATE TABLE jobhost.kv (
	worker     bigint,
	key        text COLLATE "C",
	version    bigint NOT NULL,
	expires    bigint NOT NULL,
	changed_at bigint NOT NULL,
	size       bigint NOT NULL,
	value      bytea NOT NULL,
	PRIMARY KEY (worker, key)
) WITH (fillfactor=80);
ALTER TABLE jobhost.kv ALTER value SET STORAGE EXTERNAL;
CREATE INDEX kv_expires ON jobhost.kv (worker, expires) WHERE expires>0;
CREATE TABLE jobhost.kv_worker (worker bigint PRIMARY KEY, bytes bigint NOT NULL, version bigint NOT NULL) WITH (fillfactor=10);
CREATE TABLE jobhost.child (
	job        bigint PRIMARY KEY,
	parent     text COLLATE "C" NOT NULL,
	parent_key bigint NOT NULL,
	task       bigint NOT NULL,
	depth      bigint NOT NULL
);
CREATE INDEX child_parent ON jobhost.child (parent, job, parent_key)`

// scheduleSchema holds the states of schedules: see [record.ScheduleState]. open and waiting are lists in JSON, "" when
// they are empty.
const scheduleSchema = `
CREATE TABLE jobhost.schedule (
	name      text COLLATE "C" PRIMARY KEY,
	version   bigint NOT NULL,
	timing    text NOT NULL,
	last      bigint NOT NULL,
	fired     bigint NOT NULL,
	last_job  text NOT NULL,
	paused_at bigint NOT NULL,
	gone_at   bigint NOT NULL,
	open      text NOT NULL,
	waiting   text NOT NULL
) WITH (fillfactor=50)`

// workflowSchema holds workflows.
const workflowSchema = `
CREATE TABLE jobhost.definition (hash text COLLATE "C" PRIMARY KEY, n bigint NOT NULL, text bytea NOT NULL) WITH (fillfactor=50);
ALTER TABLE jobhost.definition ALTER text SET STORAGE EXTERNAL;
CREATE TABLE jobhost.workflow (
	seq          bigint PRIMARY KEY,
	id           text COLLATE "C" NOT NULL UNIQUE,
	name         text COLLATE "C" NOT NULL,
	definition   text COLLATE "C" NOT NULL,
	status       smallint NOT NULL,
	digest       bytea NOT NULL,
	depth        bigint NOT NULL,
	parent       bigint NOT NULL,
	parent_id    text COLLATE "C" NOT NULL,
	parent_step  text NOT NULL,
	parent_mark  text NOT NULL,
	labels       text NOT NULL,
	started_at   bigint NOT NULL,
	retention_ms bigint NOT NULL,
	ended_at     bigint NOT NULL,
	expires_at   bigint NOT NULL,
	ending       text NOT NULL,
	record       bytea NOT NULL
) WITH (fillfactor=50);
CREATE INDEX workflow_name ON jobhost.workflow (name, seq);
CREATE INDEX workflow_status ON jobhost.workflow (status, seq);
CREATE INDEX workflow_parent ON jobhost.workflow (parent, seq) WHERE parent>0;
CREATE INDEX workflow_time ON jobhost.workflow (started_at);
CREATE INDEX workflow_due ON jobhost.workflow (expires_at) WHERE expires_at>0;
CREATE TABLE jobhost.workflow_data (workflow bigint, slot bigint, data bytea NOT NULL, PRIMARY KEY (workflow, slot));
ALTER TABLE jobhost.workflow_data ALTER data SET STORAGE EXTERNAL;
CREATE TABLE jobhost.workflow_step (
	workflow   bigint,
	step       bigint,
	status     text NOT NULL,
	number     bigint NOT NULL,
	fallback   bigint NOT NULL,
	reason     text NOT NULL,
	tasks      bigint NOT NULL,
	started_at bigint NOT NULL,
	ended_at   bigint NOT NULL,
	failure    text NOT NULL,
	PRIMARY KEY (workflow, step)
) WITH (fillfactor=70);
CREATE TABLE jobhost.workflow_job (workflow bigint, job bigint, PRIMARY KEY (workflow, job))`
