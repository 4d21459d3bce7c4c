package pgqueue

import (
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// delete removes a job that has ended.
func (b *batch) delete(tx *pgdb.Tx, s *pgdb.Session, op *record.Delete, res *record.OpResult) error {
	t, err := b.image.find(s, op.ID, res)
	if t == nil || err != nil {
		return err
	}
	if t.counts[record.Open] > 0 {
		res.Err = stillOpen("job", op.ID)
		return nil
	}
	workflow, err := workflowOf(t.options)
	if err != nil {
		return err
	}
	if workflow != "" {
		res.Err = isStep(op.ID, workflow)
		return nil
	}
	if _, err := b.image.remove(tx, s, []keyRange{t.keys()}); err != nil {
		return err
	}
	return tellGone(s, res)
}

// workflowOf returns the id of the workflow that a job with these options is a step of; empty = of none.
func workflowOf(options string) (string, error) {
	var job record.JobSpec
	if _, err := job.SetOptions(options); err != nil || job.Origin == nil {
		return "", err
	}
	return job.Origin.ID, nil
}

// isStep is the error for removing a job that is kept with its workflow.
func isStep(id, workflow string) error {
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Message: fmt.Sprintf("job %s is a step of workflow %s", id, workflow),
		Hint: "it goes with its workflow: jobhost workflow rm " + workflow,
	}
}

// keyRange is the keys from low to below high.
type keyRange struct{ low, high int64 }

// addRange appends a range to others with lower keys, and joins it with the last one if they are adjacent.
func addRange(ranges []keyRange, r keyRange) []keyRange {
	if n := len(ranges); n > 0 && ranges[n-1].high == r.low {
		ranges[n-1].high = r.high
		return ranges
	}
	return append(ranges, r)
}

// remove removes the jobs whose tasks have keys in the ranges, and all that belongs to them. A range must not end within a job.
// It returns the number of their tasks.
func (im *image) remove(tx *pgdb.Tx, s *pgdb.Session, ranges []keyRange) (tasks int64, err error) {
	if len(ranges) == 0 {
		return 0, nil
	}
	low := column(ranges, func(r *keyRange) int64 { return r.low })
	high := column(ranges, func(r *keyRange) int64 { return r.high })
	ids, refs, err := removeJobs(s, low, high)
	if err != nil {
		return 0, err
	}
	tasks, results, err := im.removeTasks(s, low, high)
	if err != nil {
		return 0, err
	}
	if err := moveRefs(s, append(refs, results...)); err != nil {
		return 0, err
	}
	if err := moveStates(s, ids); err != nil {
		return 0, err
	}
	return tasks, im.tellCompanions(tx, ids)
}

// tellCompanions has companions remove what they keep about jobs.
func (im *image) tellCompanions(tx *pgdb.Tx, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	for _, c := range im.companions {
		if !c.Any() {
			continue
		}
		if err := c.Removing(tx, ids); err != nil {
			return fmt.Errorf("remove what belongs to jobs: %w", err)
		}
	}
	return nil
}

// removeJobs deletes jobs and the rows with their keys, and returns their ids and references.
func removeJobs(s *pgdb.Session, low, high []int64) (ids, refs []string, err error) {
	var id, ref string
	return ids, refs, s.Each([]any{&id, &ref}, func() error {
		if ids = append(ids, id); ref != "" {
			refs = append(refs, ref)
		}
		return nil
	}, `WITH r AS (SELECT * FROM unnest($1::bigint[], $2::bigint[]) AS t(low, high)),
		gone AS (DELETE FROM jobhost.job USING r WHERE seq>=r.low AND seq<r.high RETURNING id, ref),
		parts AS (DELETE FROM jobhost.part USING r WHERE job>=r.low AND job<r.high),
		children AS (DELETE FROM jobhost.child USING r WHERE job>=r.low AND job<r.high),
		labels AS (DELETE FROM jobhost.label USING r WHERE job>=r.low AND job<r.high),
		uniqs AS (DELETE FROM jobhost.uniq USING r WHERE job>=r.low AND job<r.high)
		SELECT id, ref FROM gone`, low, high)
}

// removeTasks deletes tasks and the rows with their keys, and returns the number of tasks and their references.
func (im *image) removeTasks(s *pgdb.Session, low, high []int64) (n int64, refs []string, err error) {
	var worker, some int64
	var status record.Status
	var theirs []string
	return n, refs, s.Each([]any{&worker, &status, &some, &theirs}, func() error {
		im.count(worker, status, -some)
		n, refs = n+some, append(refs, theirs...)
		return nil
	}, `WITH r AS (SELECT * FROM unnest($1::bigint[], $2::bigint[]) AS t(low, high)),
		gone AS (DELETE FROM jobhost.task USING r WHERE seq>=r.low AND seq<r.high RETURNING worker, status, ref),
		results AS (DELETE FROM jobhost.result USING r WHERE task>=r.low AND task<r.high),
		failures AS (DELETE FROM jobhost.failure USING r WHERE task>=r.low AND task<r.high),
		logs AS (DELETE FROM jobhost.log USING r WHERE task>=r.low AND task<r.high),
		items AS (DELETE FROM jobhost.item USING r WHERE task>=r.low AND task<r.high),
		letters AS (DELETE FROM jobhost.dead USING r WHERE task>=r.low AND task<r.high)
		SELECT worker, status, count(*), coalesce(array_agg(ref) FILTER (WHERE ref<>''), '{}') FROM gone GROUP BY worker, status`, low, high)
}

// moveRefs moves the references of removed rows from the live ones to those whose objects are to be deleted.
func moveRefs(s *pgdb.Session, refs []string) error {
	if len(refs) == 0 {
		return nil
	}
	_, err := s.Exec(`WITH live AS (DELETE FROM jobhost.object WHERE ref=ANY($1))
		INSERT INTO jobhost.object_gone (ref) SELECT * FROM unnest($1::text[]) ON CONFLICT DO NOTHING`, refs)
	return err
}

// tellGone sets in res whether there are objects or states to delete elsewhere.
func tellGone(s *pgdb.Session, res *record.OpResult) error {
	_, err := s.One([]any{&res.Gone}, "SELECT EXISTS(SELECT FROM jobhost.object_gone) OR EXISTS(SELECT FROM jobhost.states_gone)")
	return err
}
