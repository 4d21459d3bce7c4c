package pgqueue

import (
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// evictLooks bounds the work of one eviction. After the limit was lowered, several deaths may be needed to get there.
const evictLooks = 32

// evict removes the oldest jobs with dead tasks of a worker until no more than most dead tasks are left. It spares one job,
// except, and jobs that are still open. A worker at its limit loses a job with each death, so evictions are made in the image,
// and the rows of all of a commit are deleted together.
func (im *image) evict(tx *pgdb.Tx, worker, except, most int64, res *record.OpResult) error {
	r := &im.evictions
	l := r.candidatesOf(im, worker)
	var ids []string
	at := l.first(r.cursor(worker))
	for looked := 0; im.dead.n[worker] > most && looked < evictLooks; looked++ {
		v, more := l.victim(tx, im, at)
		if v == nil {
			if !more && !tx.Missed() {
				r.moved[worker] = 0 // at the end; next time from the beginning
			}
			break
		}
		why, err := im.judge(v, except)
		switch {
		case err != nil:
			return err
		case why == isUnflushed:
			if err := im.tellCompanions(tx, ids); err != nil || tx.Direct() == nil {
				return err
			}
			return im.evict(tx, worker, except, most, res)
		case why == isStepOfWorkflow && len(res.Evicted) == 0:
			r.moved[worker] = v.end() // or the next evictions would look at nothing but such jobs
			at++
		case why != isOver:
			at++
		default:
			l.remove(at)
			im.evictJob(tx, worker, v)
			res.Removed += v.Tasks
			res.Evicted = append(res.Evicted, v.ID)
			if !v.unread {
				ids = append(ids, v.ID)
			}
		}
	}
	return im.tellCompanions(tx, ids)
}

// verdict is what becomes of a job with dead tasks.
type verdict int

const (
	isOver           verdict = iota // it is evicted
	stays                           // it is open, or the job to spare
	isStepOfWorkflow                // it is removed with its workflow
	isUnflushed                     // this commit has added or ended it: it has to be flushed before
)

// judge decides about a job. One that was not read yet counts as isOver.
func (im *image) judge(v *victim, except int64) (verdict, error) {
	sums := im.sumsOf(v)
	switch {
	case v.Key == except || sums[record.Open] > 0:
		return stays, nil
	case v.unflushed || v.Open > 0:
		return isUnflushed, nil
	}
	workflow, err := workflowOf(v.Options)
	if workflow != "" {
		return isStepOfWorkflow, err
	}
	return isOver, err
}

// sumsOf returns the numbers of a job's tasks by status, with the changes of this commit.
func (im *image) sumsOf(v *victim) record.StatusCounts {
	if v.Tasks == 1 {
		return record.StatusCounts{record.Dead: 1}
	}
	if sums := im.tasks.parts.Known(v.Key); sums != nil {
		return *sums
	}
	return record.StatusCounts{record.Open: v.Open, record.Succeeded: v.Succeeded, record.Dead: v.Dead, record.Cancelled: v.Cancelled}
}

// evictJob removes a job from the image.
func (im *image) evictJob(tx *pgdb.Tx, worker int64, v *victim) {
	for status, n := range im.sumsOf(v) {
		if n != 0 {
			im.count(worker, record.Status(status), -n)
		}
	}
	if v.unread {
		return
	}
	im.evictions.add(v)
	im.jobs.ids.Delete(v.ID)
	if k := (uniqKey{worker, v.Unique}); v.Unique != "" {
		if u := im.jobs.uniq.Known(k); u == nil || u.job == v.Key {
			im.jobs.uniq.Delete(k)
		}
	}
	if v.Parent != "" {
		k := parentKey{v.Parent, v.ParentKey}
		if n := im.jobs.childCounts.Get(tx, k); n != nil {
			im.jobs.childCounts.Put(k, *n-1)
		}
	}
	for key := v.Key; key < v.end(); key++ {
		if im.tasks.rows.Known(key) != nil {
			im.tasks.rows.Delete(key)
		}
	}
	if im.tasks.parts.Known(v.Key) != nil {
		im.tasks.parts.Delete(v.Key)
	}
}

// free makes sure that the id of a job which this commit has evicted can be used again: its rows have to be deleted before.
// False = the change will be applied again.
func (im *image) free(tx *pgdb.Tx, id string) bool {
	return !im.evictions.ids[id] || tx.Direct() != nil
}

// anyGone reports whether there are references or states that are gone.
func (im *image) anyGone(tx *pgdb.Tx) bool {
	gone := im.evictions.gone.Get(tx, struct{}{})
	return gone != nil && *gone
}
