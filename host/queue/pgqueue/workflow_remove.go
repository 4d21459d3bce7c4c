package pgqueue

import (
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// deleteWorkflow removes the workflow of an id, or a piece of it.
func (b *batch) deleteWorkflow(tx *pgdb.Tx, s *pgdb.Session, op *record.DeleteWorkflow, res *record.OpResult) error {
	var key int64
	var status record.WorkflowStatus
	var parent string
	found, err := s.One([]any{&key, &status, &parent}, "SELECT seq, status, parent_id FROM jobhost.workflow WHERE id=$1", op.ID)
	switch {
	case err != nil:
		return err
	case !found:
		res.Err = &jobhost.Error{Code: jobhost.CodeNotFound, Message: fmt.Sprintf("there is no workflow %s", op.ID)}
		return nil
	case status == record.WorkflowRunning:
		res.Err = stillOpen("workflow", op.ID)
		return nil
	case parent != "":
		res.Err = conflict("workflow %s is a step of %s and goes with it", op.ID, parent)
		return nil
	}
	running, err := runningBelow(s, []int64{key})
	if err != nil {
		return err
	}
	if id, runs := running[key]; runs {
		res.Err = conflict("workflow %s, a step of %s, has not ended", id, op.ID)
		return nil
	}
	r := &workflowRemoval{image: b.image, tx: tx, s: s, at: op.At, room: int64(max(op.Limit, 1)), res: res}
	if _, err := r.remove([]int64{key}); err != nil {
		return err
	}
	if r.more {
		res.Next = op.At
	}
	return tellGone(s, res)
}

// laterRemoval is how much longer a workflow is kept while one of its steps runs.
const laterRemoval = 60_000 // milliseconds

// tidyWorkflows removes workflows whose time is over, up to about op.Limit tasks. more = there are others, or some of a
// workflow is left.
func (b *batch) tidyWorkflows(tx *pgdb.Tx, s *pgdb.Session, op *record.Tidy, res *record.OpResult) (more bool, err error) {
	for res.Removed < int64(op.Limit) {
		roots, err := dueWorkflows(s, int64(op.At), int64(op.Limit)-res.Removed)
		if len(roots) == 0 || err != nil {
			return false, err
		}
		r := &workflowRemoval{image: b.image, tx: tx, s: s, at: op.At, room: int64(op.Limit) - res.Removed, res: res}
		n, err := r.remove(roots)
		if r.more || err != nil {
			return true, err
		}
		res.Removed += n // themselves: else those without jobs would have no bound
	}
	return true, nil
}

// dueWorkflows returns workflows whose time is over. It extends the time of those with a step that runs.
func dueWorkflows(s *pgdb.Session, at, room int64) (roots []int64, err error) {
	for len(roots) == 0 {
		var due []int64
		var key int64
		err := s.Each([]any{&key}, func() error {
			due = append(due, key)
			return nil
		}, "SELECT seq FROM jobhost.workflow WHERE expires_at>0 AND expires_at<=$1 ORDER BY expires_at LIMIT $2", at, room)
		if len(due) == 0 || err != nil {
			return nil, err
		}
		running, err := runningBelow(s, due)
		if err != nil {
			return nil, err
		}
		var later []int64
		for _, key := range due {
			if _, runs := running[key]; runs {
				later = append(later, key)
			} else {
				roots = append(roots, key)
			}
		}
		if len(later) == 0 {
			break
		}
		if _, err := s.Exec("UPDATE jobhost.workflow SET expires_at=$1 WHERE seq=ANY($2)", at+laterRemoval, later); err != nil {
			return nil, err
		}
	}
	return roots, nil
}

// below selects workflows, those that are their steps, and so on, level by level. The subquery makes the planner use the index.
const below = `WITH RECURSIVE below(root, seq, parent, level) AS (
	SELECT seq, seq, 0::bigint, 0 FROM unnest($1::bigint[]) AS t(seq)
	UNION ALL SELECT below.root, w.seq, below.seq, below.level+1 FROM below
	CROSS JOIN LATERAL (SELECT seq FROM jobhost.workflow WHERE parent>0 AND parent=below.seq OFFSET 0) AS w) `

// runningBelow returns, for each of some workflows that runs or has a running workflow below it, the id of one that runs. That
// happens when a step was retried after the workflow above it had ended.
func runningBelow(s *pgdb.Session, roots []int64) (map[int64]string, error) {
	running := map[int64]string{}
	var root int64
	var id string
	return running, s.Each([]any{&root, &id}, func() error {
		running[root] = id
		return nil
	}, below+"SELECT root, min(id) FROM below JOIN jobhost.workflow w USING (seq) WHERE w.status=0 GROUP BY root", roots)
}

// workflowRemoval removes workflows, or a piece of them.
type workflowRemoval struct {
	image *image
	tx    *pgdb.Tx
	s     *pgdb.Session
	at    record.Millis
	room  int64 // tasks and workflows that may be removed, each
	res   *record.OpResult
	more  bool // something is left
}

// leaf is a workflow to remove. Those that are its steps are removed before it.
type leaf struct {
	key, parent int64
	stays       bool // some of it is left
}

// remove removes workflows with all below them: first their jobs, as many as there is room for, then those without jobs. It
// returns how many of the given ones are gone. They are hidden at once, and the rest of them is removed by a later tidy.
func (r *workflowRemoval) remove(roots []int64) (gone int64, err error) {
	if err := r.hide(roots); err != nil {
		return 0, err
	}
	leaves, err := r.leaves(roots)
	if err != nil {
		return 0, err
	}
	if err := r.removeJobs(leaves); err != nil {
		return 0, err
	}
	stays := map[int64]bool{}
	var over []int64
	for _, l := range leaves {
		if l.stays || stays[l.key] {
			stays[l.parent], r.more = true, true
			continue
		}
		if over = append(over, l.key); l.parent == 0 {
			gone++
		}
	}
	return gone, r.drop(over)
}

// hide keeps workflows from being shown, and those below them from being retried.
func (r *workflowRemoval) hide(roots []int64) error {
	n, err := r.s.Exec("UPDATE jobhost.workflow SET status=4, expires_at=1 WHERE seq=ANY($1) AND status<>4", roots)
	if n == 0 || err != nil {
		return err
	}
	_, err = r.s.Exec(below+"UPDATE jobhost.workflow SET status=4 WHERE seq IN (SELECT seq FROM below) AND status<>4", roots)
	return err
}

// leaves returns the workflows and all below them, the lowest first, as many as there is room for.
func (r *workflowRemoval) leaves(roots []int64) (leaves []leaf, err error) {
	var l leaf
	err = r.s.Each([]any{&l.key, &l.parent}, func() error {
		leaves = append(leaves, l)
		return nil
	}, below+"SELECT seq, parent FROM below ORDER BY level DESC, seq LIMIT $2", roots, r.room+1)
	if int64(len(leaves)) > r.room {
		leaves, r.more = leaves[:r.room], true
	}
	return leaves, err
}

// leafJob is a job of a workflow; without an id it was removed before.
type leafJob struct {
	at         int // number of its leaf, from 1
	key, tasks int64
	id         string
	options    string
	open       bool
}

// removeJobs removes the jobs of the leaves, as many as there is room for, and marks leaves that have jobs left.
func (r *workflowRemoval) removeJobs(leaves []leaf) error {
	jobs, err := r.jobs(leaves)
	if err != nil {
		return err
	}
	var over []keyRange
	var done []workflowJob
	tasks := int64(0)
	for i := range jobs {
		job := &jobs[i]
		if tasks >= r.room || int64(i) == r.room {
			for at := job.at - 1; at < len(leaves); at++ {
				leaves[at].stays = true
			}
			break
		}
		if job.open {
			if err := r.cancel(job); err != nil {
				return err
			}
		}
		if job.id != "" {
			over = addRange(over, keyRange{job.key, job.key + job.tasks})
			r.image.expires(job.key, r.at) // so that its block is looked at again, and removed when it is empty
		}
		tasks += job.tasks
		done = append(done, workflowJob{leaves[job.at-1].key, job.key})
	}
	n, err := r.image.remove(r.tx, r.s, over)
	r.res.Removed += n
	if len(done) == 0 || err != nil {
		return err
	}
	_, err = r.s.Exec("DELETE FROM jobhost.workflow_job AS j USING unnest($1::bigint[], $2::bigint[]) AS t(workflow, job) WHERE j.workflow=t.workflow AND j.job=t.job",
		column(done, func(j *workflowJob) int64 { return j.workflow }), column(done, func(j *workflowJob) int64 { return j.job }))
	return err
}

// jobs returns the jobs of the leaves in their order, one more than there is room for.
func (r *workflowRemoval) jobs(leaves []leaf) (jobs []leafJob, err error) {
	var job leafJob
	return jobs, r.s.Each([]any{&job.at, &job.key, &job.tasks, &job.id, &job.options, &job.open}, func() error {
		jobs = append(jobs, job)
		return nil
	}, `SELECT t.n, w.job, coalesce(j.tasks, 0), coalesce(j.id, ''), coalesce(j.options, ''), coalesce(o.open, false)
		FROM unnest($1::bigint[]) WITH ORDINALITY AS t(workflow, n)
		CROSS JOIN LATERAL (SELECT job FROM jobhost.workflow_job WHERE workflow=t.workflow ORDER BY job LIMIT $2) AS w
		LEFT JOIN LATERAL (SELECT tasks, id, options FROM jobhost.job WHERE seq=w.job) AS j ON true
		LEFT JOIN LATERAL (SELECT true AS open FROM jobhost.task WHERE seq>=w.job AND seq<w.job+j.tasks AND status+0=0 LIMIT 1) AS o ON true
		ORDER BY t.n, w.job LIMIT $2`, column(leaves, func(l *leaf) int64 { return l.key }), r.room+1)
}

// cancel cancels the tasks of a job that was revived. Its lane has to drop it and cancel its attempt.
func (r *workflowRemoval) cancel(job *leafJob) error {
	var spec record.JobSpec
	if _, err := spec.SetOptions(job.options); err != nil {
		return err
	}
	var found record.OpResult
	if err := r.image.cancel(r.s, &record.Cancel{ID: job.id, At: r.at}, &found); err != nil {
		return err
	}
	if spec.Origin != nil {
		r.res.Dropped = append(r.res.Dropped, droppedOf(job.id, spec.Origin, &found))
	}
	return nil
}

// drop deletes the rows of workflows that have no jobs left, and definitions that no other workflow runs.
func (r *workflowRemoval) drop(keys []int64) error {
	if len(keys) == 0 {
		return nil
	}
	var unused []string
	var hash string
	var n int64
	err := r.s.Each([]any{&hash, &n}, func() error {
		if n <= 0 {
			unused = append(unused, hash)
		}
		return nil
	}, `WITH gone AS (DELETE FROM jobhost.workflow WHERE seq=ANY($1) RETURNING definition),
		data AS (DELETE FROM jobhost.workflow_data WHERE workflow=ANY($1)),
		steps AS (DELETE FROM jobhost.workflow_step WHERE workflow=ANY($1)),
		used AS (SELECT definition, count(*) AS n FROM gone GROUP BY definition)
		UPDATE jobhost.definition AS d SET n=d.n-used.n FROM used WHERE d.hash=used.definition RETURNING d.hash, d.n`, keys)
	if len(unused) == 0 || err != nil {
		return err
	}
	_, err = r.s.Exec("DELETE FROM jobhost.definition WHERE hash=ANY($1)", unused)
	return err
}
