package pgqueue

import (
	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// parentKey names a parent. The id alone is not enough, since an earlier job may have had it.
type parentKey struct {
	id  string
	key int64
}

type childRow struct {
	job    int64
	parent *record.Parent
}

func (r *jobRows) initChildren() {
	r.childCounts = pgdb.Table[parentKey, int]{
		DB: r.db,
		SQL: `SELECT t.parent, t.key, (SELECT count(*) FROM jobhost.child c WHERE c.parent=t.parent AND c.job>t.key AND c.parent_key=t.key)
			FROM unnest($1::text[], $2::bigint[]) AS t(parent, key)`,
		Args: func(keys []parentKey) []any {
			return []any{column(keys, func(k *parentKey) string { return k.id }), column(keys, func(k *parentKey) int64 { return k.key })}
		},
		Scan: func(rows pgx.Rows) (k parentKey, n int, err error) {
			err = rows.Scan(&k.id, &k.key, &n)
			return k, n, err
		},
	}
}

// applyEffects makes the changes that a task asked for, or sets res.Err.
func (b *batch) applyEffects(tx *pgdb.Tx, worker int64, op *record.Settle, res *record.OpResult) error {
	e, im := op.Effects, b.image
	im.checkChildren(tx, e.Jobs, res)
	if res.Err != nil {
		return nil //nolint:nilerr // a refusal is an answer
	}
	plan := im.planKV(tx, worker, e.KV, op.EndedAt, e.Quota, res)
	if res.Err != nil || tx.Missed() {
		return nil //nolint:nilerr // as above
	}
	if plan != nil {
		im.keys.write(plan)
	}
	for _, job := range e.Jobs {
		var added record.OpResult
		if err := b.insertChecked(tx, job, &added); err != nil {
			return err
		}
		res.Jobs = append(res.Jobs, record.Added{Key: added.Key, Existing: added.Existing})
	}
	return nil
}

// insertChecked adds a job that checkChildren has checked, unless it exists.
func (b *batch) insertChecked(tx *pgdb.Tx, job *record.JobSpec, res *record.OpResult) error {
	im := b.image
	if im.existing(tx, job, res) || im.taken(tx, job, im.workers[job.Worker], res) {
		return nil
	}
	return b.insert(job, res)
}

// checkChildren checks that jobs of one parent can be added, or sets res.Err.
func (im *image) checkChildren(tx *pgdb.Tx, jobs []*record.JobSpec, res *record.OpResult) {
	if len(jobs) == 0 {
		return
	}
	im.jobs.ids.Want(tx, column(jobs, func(job **record.JobSpec) string { return (*job).ID }))
	added := make(map[string][16]byte, len(jobs)) // digests by id
	for _, job := range jobs {
		im.taken(tx, job, im.workers[job.Worker], &record.OpResult{}) // reads what insertChecked needs
		if digest, twice := added[job.ID]; twice {
			if digest != job.Digest {
				res.Err = record.TakenID(job.ID)
				return
			}
			continue
		}
		var there record.OpResult
		if !im.existing(tx, job, &there) {
			added[job.ID] = job.Digest
		}
		if there.Err != nil {
			res.Err = there.Err
			return
		}
	}
	checkRoom(tx, im, jobs[0].Parent, len(added), res)
}

// checkRoom checks that a parent may have n more children, or sets res.Err.
func checkRoom(tx *pgdb.Tx, im *image, parent *record.Parent, n int, res *record.OpResult) {
	if parent == nil || n == 0 {
		return
	}
	if there := im.jobs.childCounts.Get(tx, parentKey{parent.ID, int64(parent.Key)}); there != nil && *there+n > jobhost.MaxChildren {
		res.Err = record.ErrChildren(parent.ID)
	}
}

// addChild notes the parent of a job.
func (im *image) addChild(key int64, p *record.Parent) {
	k := parentKey{p.ID, int64(p.Key)}
	n := 0
	if there := im.jobs.childCounts.Known(k); there != nil {
		n = *there
	}
	im.jobs.childCounts.Put(k, n+1)
	im.jobs.children = append(im.jobs.children, childRow{key, p})
}

func (r *jobRows) flushChildren(b *pgx.Batch) {
	number := func(of func(*record.Parent) int64) []int64 {
		return column(r.children, func(c *childRow) int64 { return of(c.parent) })
	}
	b.Queue(r.db.SQL(`INSERT INTO jobhost.child (job, parent, parent_key, task, depth)
		SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])`),
		column(r.children, func(c *childRow) int64 { return c.job }), column(r.children, func(c *childRow) string { return c.parent.ID }),
		number(func(p *record.Parent) int64 { return int64(p.Key) }), number(func(p *record.Parent) int64 { return int64(p.Task) }),
		number(func(p *record.Parent) int64 { return int64(p.Depth) }))
}
