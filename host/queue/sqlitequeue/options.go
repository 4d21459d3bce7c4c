package sqlitequeue

import (
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
