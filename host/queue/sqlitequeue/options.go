package sqlitequeue

import (
	"encoding/json"
	"fmt"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// schemaOptions keeps the options of a job that few have, as JSON, and beside
// each task the group of its concurrency key.
const schemaOptions = `
ALTER TABLE job ADD COLUMN options TEXT;
ALTER TABLE task ADD COLUMN lane_group INTEGER NOT NULL DEFAULT 0`

// schemaUnique keeps deadlines beside the tasks that have one, finds jobs by
// their labels, newest first, and by the key that makes them unique. Rows of
// the last two go with their job, whatever deletes it.
const schemaUnique = `
ALTER TABLE task ADD COLUMN deadline INTEGER NOT NULL DEFAULT 0;
CREATE TABLE label(
	name  TEXT NOT NULL,
	value TEXT NOT NULL,
	job   INTEGER NOT NULL,
	PRIMARY KEY(name, value, job)
) WITHOUT ROWID;
INSERT INTO label(name, value, job)
	SELECT each.key, each.value, job.seq FROM job, json_each(job.labels) AS each WHERE job.labels IS NOT NULL;
CREATE TRIGGER label_gone AFTER DELETE ON job WHEN old.labels IS NOT NULL BEGIN
	DELETE FROM label WHERE (name, value, job) IN (SELECT key, value, old.seq FROM json_each(old.labels));
END;
CREATE TABLE uniq(
	worker INTEGER NOT NULL,
	name   TEXT NOT NULL,
	job    INTEGER NOT NULL,
	until  INTEGER NOT NULL,
	PRIMARY KEY(worker, name)
) WITHOUT ROWID;
CREATE TRIGGER uniq_gone AFTER DELETE ON job WHEN old.options IS NOT NULL BEGIN
	DELETE FROM uniq WHERE worker=old.worker AND name=json_extract(old.options, '$.unique_key') AND job=old.seq;
END`

// options are those that few jobs have. The names are stored.
type options struct {
	ConcurrencyKey string        `json:"concurrency_key,omitempty"`
	Deadline       record.Millis `json:"deadline,omitempty"`
	UniqueKey      string        `json:"unique_key,omitempty"`
	UniqueUntil    record.Millis `json:"unique_until,omitempty"`
	CallbackWorker string        `json:"callback_worker,omitempty"`
	CallbackURL    string        `json:"callback_url,omitempty"`
	ItemBytes      *int64        `json:"item_bytes,omitempty"` // of all items; nil = the job has none
	MaxParallel    int           `json:"max_parallel,omitempty"`
	Retry          *retry        `json:"retry,omitempty"`
	Breaker        *breaker      `json:"breaker,omitempty"`
	// Borrowed is a reference that the job doesn't own, so that it doesn't go with it.
	Borrowed string  `json:"borrowed,omitempty"`
	Origin   *origin `json:"origin,omitempty"`
}

// origin is a [record.Origin].
type origin struct {
	Workflow record.Key `json:"workflow"`
	ID       string     `json:"id"`
	Step     string     `json:"step,omitempty"`
	Mark     string     `json:"mark"`
}

// optionsOf returns the text that is kept of a job's options; empty = it has none.
func optionsOf(job *record.JobSpec) (string, error) {
	o := options{
		ConcurrencyKey: job.ConcurrencyKey, Deadline: job.Deadline, UniqueKey: job.UniqueKey, UniqueUntil: job.UniqueUntil,
		CallbackWorker: job.Callback.Worker, CallbackURL: job.Callback.URL, Origin: (*origin)(job.Origin),
		ItemBytes: itemBytes(job), MaxParallel: job.MaxParallel, Retry: retryOf(job.Retry), Breaker: breakerOf(job.Breaker),
	}
	if job.Borrowed {
		o.Borrowed = job.Ref
	}
	if o == (options{}) {
		return "", nil
	}
	text, err := json.Marshal(&o)
	return string(text), err
}

// fill sets the options of a job from the text that is kept of them.
func (o *options) fill(text string, job *record.JobSpec) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		return fmt.Errorf("options of job %s: %w", job.ID, err)
	}
	job.ConcurrencyKey, job.Deadline = o.ConcurrencyKey, o.Deadline
	job.UniqueKey, job.UniqueUntil = o.UniqueKey, o.UniqueUntil
	job.Callback.Worker, job.Callback.URL = o.CallbackWorker, o.CallbackURL
	job.MaxParallel, job.Retry, job.Breaker = o.MaxParallel, o.Retry.policy(), o.Breaker.policy()
	job.Origin = (*record.Origin)(o.Origin)
	if o.Borrowed != "" {
		job.Ref, job.Borrowed = o.Borrowed, true
	}
	return nil
}

// index makes a job that was added findable by its labels, its unique key and
// the name of its payload's object.
func (l *ledger) index(tx *sqlitedb.Tx, key, worker int64, job *record.JobSpec) error {
	for name, value := range job.Labels {
		err := tx.Stmt("INSERT INTO label(name, value, job) VALUES(?,?,?)").Text(name).Text(value).Int(key).Exec()
		if err != nil {
			return err
		}
	}
	if ownRef(job) != "" {
		if err := addObject(tx, job.Ref); err != nil {
			return err
		}
	}
	if job.UniqueKey == "" {
		return nil
	}
	return tx.Stmt(`INSERT INTO uniq(worker, name, job, until) VALUES(?,?,?,?)
		ON CONFLICT DO UPDATE SET job=excluded.job, until=excluded.until`).
		Int(worker).Text(job.UniqueKey).Int(key).Int(int64(job.UniqueUntil)).Exec()
}

// taken answers a submit whose unique key, or id, belongs to a job that is there.
func (l *ledger) taken(tx *sqlitedb.Tx, job *record.JobSpec, worker int64, res *record.OpResult) (bool, error) {
	if there, err := l.existing(tx, job, res); there || err != nil {
		return there, err
	}
	s := tx.Stmt(`SELECT job.seq, job.id FROM uniq JOIN job ON job.seq=uniq.job
		WHERE uniq.worker=? AND uniq.name=? AND (until=0 OR until>?)`).
		Int(worker).Text(job.UniqueKey).Int(int64(job.CreatedAt))
	if !s.Step() {
		return false, s.Done()
	}
	res.Key, res.ID, res.Existing = record.Key(s.ColInt(0)), s.ColText(1), true
	return true, s.Done()
}

// then adds the jobs that are to come with an operation that ended a task.
func (l *ledger) then(tx *sqlitedb.Tx, follow func(record.End) []*record.JobSpec, res *record.OpResult) error {
	for _, job := range follow(record.End{Job: res.JobEnded, Final: res.Final}) {
		text, err := jobTexts(job)
		if err != nil {
			return err
		}
		var added record.OpResult
		if err := l.submit(tx, job, text, &added); err != nil {
			return err
		}
		if added.Err == nil && !added.Existing { // otherwise such a job is there already
			job.Key = added.Key
			res.Then = append(res.Then, job)
		}
	}
	return nil
}
