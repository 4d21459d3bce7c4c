package sqlitequeue

import "github.com/jobhost/jobhost/internal/sqlitedb"

// Schemas returns the tables of the queue and of what jobs leave behind.
func Schemas() []sqlitedb.Schema {
	return []sqlitedb.Schema{
		{
			Name: "queue", Check: checkQueue, Mend: mendQueue,
			Steps: []string{
				schema1, schema2, schemaNotes, schemaOptions, schemaUnique, schemaRetention, schemaDead, schemaObjects, schemaItems, schemaSuspect,
				schemaStates, schemaSums,
			},
		},
		{Name: "effects", Steps: []string{effectsSchema, effectsSums}, Check: checker(effectRows), Mend: mendEffects},
		{Name: "workflow", Steps: []string{workflowSchema, workflowSums}, Check: checker(workflowRows), Mend: mendWorkflows},
		ScheduleSchema(),
	}
}

// schema1 is the first version. Times are in milliseconds since 1970, 0 = none;
// statuses are those of queue.Status. Each index costs every job something, so
// there are three and each has its reader:
//
//   - job.id: idempotent submits, and everything that names a job
//   - task_open: claims, in order of (ready_at, seq)
//   - task_list: lists by worker, by status and by both, newest first. SQLite
//     ends an index entry with the row's key, so it is (worker, status, seq).
//
// A list of one worker merges the four statuses, a list of one status merges
// the workers, so that a page reads about as many entries as it returns.
//
// span holds the earliest and the latest creation time of the jobs whose keys
// are in one block of 1,024. Lists by time skip blocks by it, which stays
// right when the clock was set back and keys don't rise with time.
//
// part counts the tasks of jobs that have more than one, so that the last
// settlement knows that it is; counter does so by worker. Both are sums of
// task and are written in the same transactions.
//
// sequence is the key of the next task: a key is never given out again, not
// even when the last job was deleted before the file was closed.
const schema1 = `
CREATE TABLE worker(
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE
);
CREATE TABLE job(
	seq          INTEGER PRIMARY KEY,
	id           TEXT NOT NULL UNIQUE,
	worker       INTEGER NOT NULL,
	tasks        INTEGER NOT NULL,
	priority     INTEGER NOT NULL,
	max_attempts INTEGER NOT NULL,
	timeout_ns   INTEGER NOT NULL,
	created_at   INTEGER NOT NULL,
	ready_at     INTEGER NOT NULL,
	digest       BLOB NOT NULL,
	entry        TEXT,
	content_type TEXT,
	labels       TEXT,
	payload      BLOB NOT NULL
);
CREATE TABLE task(
	seq         INTEGER PRIMARY KEY,
	job         INTEGER NOT NULL,
	idx         INTEGER NOT NULL,
	tasks       INTEGER NOT NULL,
	worker      INTEGER NOT NULL,
	level       INTEGER NOT NULL,
	status      INTEGER NOT NULL,
	attempt     INTEGER NOT NULL,
	token       INTEGER NOT NULL,
	ready_at    INTEGER NOT NULL,
	started_at  INTEGER NOT NULL,
	ended_at    INTEGER NOT NULL,
	result_size INTEGER NOT NULL
);
CREATE INDEX task_open ON task(worker, ready_at) WHERE status=0;
CREATE INDEX task_list ON task(worker, status);
CREATE TABLE part(
	job       INTEGER PRIMARY KEY,
	open      INTEGER NOT NULL,
	succeeded INTEGER NOT NULL,
	dead      INTEGER NOT NULL,
	cancelled INTEGER NOT NULL
);
CREATE TABLE result(
	task INTEGER PRIMARY KEY,
	data BLOB NOT NULL
);
CREATE TABLE failure(
	seq    INTEGER PRIMARY KEY,
	task   INTEGER NOT NULL,
	record TEXT NOT NULL
);
CREATE INDEX failure_task ON failure(task);
CREATE TABLE log(
	seq     INTEGER PRIMARY KEY,
	task    INTEGER NOT NULL,
	idx     INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	dropped INTEGER NOT NULL,
	text    BLOB NOT NULL
);
CREATE INDEX log_task ON log(task);
CREATE TABLE counter(
	worker INTEGER NOT NULL,
	status INTEGER NOT NULL,
	n      INTEGER NOT NULL,
	PRIMARY KEY(worker, status)
) WITHOUT ROWID;
CREATE TABLE span(
	block INTEGER PRIMARY KEY,
	low   INTEGER NOT NULL,
	high  INTEGER NOT NULL
);
CREATE TABLE sequence(
	id   INTEGER PRIMARY KEY,
	next INTEGER NOT NULL
);
INSERT INTO sequence(id, next) VALUES(1, 1)`

// schemaRetention says until when ended tasks are kept (expires_at, 0 = for
// ever) and what their job asked for (retention_ms, 0 = the worker's).
//
// An index over the ends of all tasks would cost each of them an entry. Instead
// span.due says when a block of keys is to be looked at next because something
// in it may be over, 0 = nothing in it has an end: one small row for 1,024 tasks,
// written once per transaction at most, and mostly not at all.
const schemaRetention = `
ALTER TABLE task ADD COLUMN retention_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN expires_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE span ADD COLUMN due INTEGER NOT NULL DEFAULT 0;
CREATE INDEX span_due ON span(due) WHERE due>0;
UPDATE task SET expires_at=ended_at+CASE status WHEN 2 THEN 2592000000 ELSE 86400000 END WHERE status<>0;
UPDATE span SET due=1`

// schemaDead holds the dead letters: what a list shows and selects by, so that
// it need not read failures. Few tasks die, so there is an index for each way
// to ask. A letter stays when its task is revived, until it dies again or its
// job is removed.
//
// death counts deaths by the hour, so that a summary of weeks reads few rows.
const schemaDead = `
CREATE TABLE dead(
	task       INTEGER PRIMARY KEY,
	worker     INTEGER NOT NULL,
	died_at    INTEGER NOT NULL,
	revived_at INTEGER NOT NULL,
	attempts   INTEGER NOT NULL,
	category   TEXT NOT NULL,
	code       TEXT NOT NULL,
	severity   TEXT NOT NULL,
	message    TEXT NOT NULL
);
CREATE INDEX dead_time ON dead(died_at);
CREATE INDEX dead_worker ON dead(worker, died_at);
CREATE INDEX dead_code ON dead(code, died_at);
CREATE INDEX dead_category ON dead(category, died_at);
CREATE TABLE death(
	hour     INTEGER NOT NULL,
	worker   INTEGER NOT NULL,
	category TEXT NOT NULL,
	code     TEXT NOT NULL,
	n        INTEGER NOT NULL,
	PRIMARY KEY(hour, worker, category, code)
) WITHOUT ROWID;
INSERT INTO dead
	SELECT task.seq, task.worker, task.ended_at, 0, task.attempt, coalesce(record->>'category', ''), coalesce(record->>'code', ''),
		coalesce(record->>'severity', ''), coalesce(record->>'message', '')
	FROM task LEFT JOIN failure ON failure.seq=(SELECT max(seq) FROM failure WHERE failure.task=task.seq)
	WHERE status=2;
INSERT INTO death
	SELECT died_at-died_at%3600000, worker, category, code, count(*) FROM dead GROUP BY 1, 2, 3, 4`

// schemaSuspect marks tasks with an attempt that was under way when a host died. The
// mark stays with the task, also when it is revived.
const schemaSuspect = `ALTER TABLE task ADD COLUMN suspect INTEGER NOT NULL DEFAULT 0`

// schema2 counts the fuel of all attempts of a task.
const schema2 = `ALTER TABLE task ADD COLUMN fuel INTEGER NOT NULL DEFAULT 0`
