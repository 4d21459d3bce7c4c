package pgqueue

import (
	"github.com/jobhost/jobhost/host/queue/record"
)

// CancelStep implements [record.WorkflowTx]. Jobs with one task are cancelled in the image, since these are most: each step with
// a deadline cancels its timer's job when it ends.
func (t *workflowTx) CancelStep(id string, origin *record.Origin, at, expires record.Millis) error {
	im := t.image
	job := im.jobs.ids.Get(t.tx, id)
	if job == nil {
		return nil
	}
	own := im.workflows.jobs.Get(t.tx, workflowJob{int64(origin.Workflow), job.seq})
	task := im.tasks.rows.Get(t.tx, job.seq)
	if own == nil || task == nil {
		return nil
	}
	op, res := &record.Cancel{ID: id, At: at, ExpiresAt: expires}, record.OpResult{}
	switch {
	case task.tasks > 1:
		if err := t.cancel(t.tx, op, &res); err != nil {
			return err
		}
	case task.status == record.Open:
		im.cancelTask(*task, op, &res)
	}
	if len(res.Tasks) > 0 {
		t.dropped(droppedOf(id, origin, &res))
	}
	return nil
}

// cancelTask cancels the only task of a job, which is open.
func (im *image) cancelTask(task taskRow, op *record.Cancel, res *record.OpResult) {
	res.Worker = im.names[task.worker]
	res.Tasks = []record.Changed{{
		Key: record.Key(task.seq), Level: int(task.level), Attempt: int(task.attempt), ReadyAt: record.Millis(task.readyAt),
		Group: record.Group(task.group), Token: task.token,
	}}
	res.JobEnded, res.Final = true, record.StatusCounts{record.Cancelled: 1}
	task.status, task.endedAt, task.expiresAt = record.Cancelled, int64(op.At), int64(op.ExpiresAt)
	task.token++
	im.tasks.rows.Put(task.seq, task)
	im.expires(task.job, op.ExpiresAt)
	im.count(task.worker, record.Open, -1)
	im.count(task.worker, record.Cancelled, 1)
}

// dropped notes that the lane of a job has to drop it, since it was cancelled.
func (t *workflowTx) dropped(d record.Dropped) {
	for i, job := range t.res.Then { // this transition has submitted it, so no lane has it yet
		if job.ID == d.ID {
			t.res.Then = append(t.res.Then[:i:i], t.res.Then[i+1:]...)
			return
		}
	}
	t.res.Dropped = append(t.res.Dropped, d)
}

func droppedOf(id string, origin *record.Origin, res *record.OpResult) record.Dropped {
	return record.Dropped{Origin: *origin, ID: id, Worker: res.Worker, Tasks: res.Tasks, Final: res.Final, JobEnded: res.JobEnded}
}
