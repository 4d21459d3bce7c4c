package sqlitequeue

import (
	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// effectsSchema holds what attempts leave behind besides their results. It is a
// schema of its own, so that the tables of the queue need not know of it.
//
//   - kv: keys and values; kv_expires finds what has expired
//   - kv_worker: what the keys of a worker cost together, and the version of the
//     last change among them, which is never given out again
//   - child: who submitted a job; there is no row for jobs from outside
const effectsSchema = `
CREATE TABLE kv(
	id         INTEGER PRIMARY KEY,
	worker     INTEGER NOT NULL,
	key        TEXT NOT NULL,
	version    INTEGER NOT NULL,
	expires    INTEGER NOT NULL,
	changed_at INTEGER NOT NULL,
	size       INTEGER NOT NULL,
	value      BLOB NOT NULL,
	UNIQUE(worker, key)
);
CREATE INDEX kv_expires ON kv(expires) WHERE expires>0;
CREATE TABLE kv_worker(
	worker  INTEGER PRIMARY KEY,
	bytes   INTEGER NOT NULL,
	version INTEGER NOT NULL
);
CREATE TABLE child(
	job        INTEGER PRIMARY KEY,
	parent     TEXT NOT NULL,
	parent_key INTEGER NOT NULL,
	task       INTEGER NOT NULL,
	depth      INTEGER NOT NULL
);
CREATE INDEX child_parent ON child(parent, job, parent_key)`

// applyEffects makes the changes that a task asked for, or records in res why it
// can't. Everything is looked at before anything is written.
func (b *batch) applyEffects(tx *sqlitedb.Tx, worker int64, op *record.Settle, res *record.OpResult) error {
	e := op.Effects
	if err := b.ledger.checkChildren(tx, e.Jobs, res); err != nil || res.Err != nil {
		return err
	}
	if err := b.ledger.changeKV(tx, worker, e.KV, op.EndedAt, e.Quota, res); err != nil || res.Err != nil {
		return err
	}
	for _, job := range e.Jobs {
		var added record.OpResult
		if err := b.ledger.insert(tx, job, b.effects[job], &added); err != nil {
			return err
		}
		res.Jobs = append(res.Jobs, record.Added{Key: added.Key, Existing: added.Existing})
	}
	return nil
}

// checkChildren sees that jobs of one parent can be added.
func (l *ledger) checkChildren(tx *sqlitedb.Tx, jobs []*record.JobSpec, res *record.OpResult) error {
	if len(jobs) == 0 {
		return nil
	}
	added := make(map[string][16]byte, len(jobs)) // digests by id
	for _, job := range jobs {
		if digest, twice := added[job.ID]; twice {
			if digest != job.Digest {
				res.Err = record.TakenID(job.ID)
				return nil
			}
			continue
		}
		var there record.OpResult
		existing, err := l.existing(tx, job, &there)
		if err != nil {
			return err
		}
		if there.Err != nil {
			res.Err = there.Err
			return nil //nolint:nilerr // a refusal is an answer
		}
		if !existing {
			added[job.ID] = job.Digest
		}
	}
	return checkRoom(tx, jobs[0].Parent, len(added), res)
}

// checkRoom sees that a parent may have n children more.
func checkRoom(tx *sqlitedb.Tx, parent *record.Parent, n int, res *record.OpResult) error {
	if parent == nil || n == 0 {
		return nil
	}
	there, err := children(tx, parent.ID, int64(parent.Key))
	if err == nil && there+n > jobhost.MaxChildren {
		res.Err = record.ErrChildren(parent.ID)
	}
	return err
}

// children counts the jobs that a job has submitted, of which there are few.
func children(q sqlitedb.Querier, parent string, key int64) (int, error) {
	// A child comes after its parent, so those of earlier jobs of that id are skipped.
	s := q.Stmt("SELECT count(*) FROM child WHERE parent=?1 AND job>?2 AND parent_key=?2").Text(parent).Int(key)
	n := 0
	if s.Step() {
		n = int(s.ColInt(0))
	}
	return n, s.Done()
}

// addChild notes who submitted a job.
func addChild(tx *sqlitedb.Tx, key int64, p *record.Parent) error {
	return tx.Stmt("INSERT INTO child(job, parent, parent_key, task, depth) VALUES(?,?,?,?,?)").
		Int(key).Text(p.ID).Int(int64(p.Key)).Int(int64(p.Task)).Int(int64(p.Depth)).Exec()
}

// readParent fills in who submitted a job.
func readParent(q sqlitedb.Querier, r *record.JobRecord) error {
	s := q.Stmt("SELECT parent, parent_key, task, depth FROM child WHERE job=?").Int(int64(r.Key))
	if s.Step() {
		r.Parent = &record.Parent{
			ID: s.ColText(0), Key: record.Key(s.ColInt(1)), Task: int(s.ColInt(2)), Depth: int(s.ColInt(3)),
		}
	}
	return s.Done()
}
