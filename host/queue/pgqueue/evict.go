package pgqueue

import (
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// evictLooks bounds the work of one eviction: a bound that was lowered takes hold with the next deaths.
const evictLooks = 32

// victim is a job with a dead task.
type victim struct {
	key, tasks, dead int64
	open             bool
	id, options      string
}

// victims finds the first jobs of a worker with dead tasks, from a key on, of each job by its first dead task alone.
func victims(s *pgdb.Session, worker, from int64) (list []victim, err error) {
	var v victim
	return list, s.Each([]any{&v.key, &v.tasks, &v.dead, &v.open, &v.id, &v.options}, func() error {
		list = append(list, v)
		return nil
	}, `WITH RECURSIVE look(job, tasks, n) AS (
			(SELECT job, tasks, 1 FROM jobhost.task WHERE worker=$1 AND status=2 AND seq>=$2 ORDER BY seq LIMIT 1)
			UNION ALL
			SELECT t.job, t.tasks, look.n+1 FROM look, LATERAL (SELECT job, tasks FROM jobhost.task
				WHERE worker=$1 AND status=2 AND seq>=look.job+look.tasks ORDER BY seq LIMIT 1) AS t WHERE look.n<$3)
		SELECT look.job, look.tasks, coalesce(p.dead, 1), coalesce(p.open, 0)>0, j.id, j.options
		FROM look JOIN jobhost.job j ON j.seq=look.job LEFT JOIN jobhost.part p ON p.job=look.job ORDER BY look.n`, worker, from, evictLooks)
}

// evict removes the oldest jobs with dead tasks of a worker that has more than most, but not the one given, nor jobs
// that are still open.
func (im *image) evict(tx *pgdb.Tx, s *pgdb.Session, worker, except, most int64, res *record.OpResult) error {
	list, err := victims(s, worker, im.evicting[worker])
	if err != nil {
		return err
	}
	n := im.dead.n[worker]
	var over []keyRange
	for i := 0; i < len(list) && n > most; i++ {
		v := &list[i]
		if v.key == except || v.open {
			continue
		}
		workflow, err := workflowOf(v.options)
		if err != nil {
			return err
		}
		if workflow != "" {
			if len(over) == 0 {
				im.evicting[worker] = v.key + v.tasks // or those would be all that is ever looked at
			}
			continue
		}
		over = addRange(over, keyRange{v.key, v.key + v.tasks})
		n -= v.dead
		res.Evicted = append(res.Evicted, v.id)
	}
	if n > most && len(list) < evictLooks {
		delete(im.evicting, worker)
	}
	removed, err := im.remove(tx, s, over)
	res.Removed += removed
	return err
}
