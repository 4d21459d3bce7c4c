package queue

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// changePage is how many letters are read at once, and looked at before a rate
// makes the call wait.
const changePage = 200

// ChangeDead retries or removes dead letters.
func (q *Queue) ChangeDead(ctx context.Context, change jobhost.DeadChange) (jobhost.DeadChanged, error) {
	if err := change.Check(); err != nil {
		return jobhost.DeadChanged{}, err
	}
	c := &deadChange{queue: q, change: &change, began: time.Now(), done: jobhost.DeadChanged{DryRun: change.DryRun}}
	var err error
	if len(change.Jobs) > 0 {
		err = c.jobs(ctx)
	} else {
		err = c.matching(ctx)
	}
	return c.done, err
}

// deadChange is a call of ChangeDead.
type deadChange struct {
	queue   *Queue
	change  *jobhost.DeadChange
	began   time.Time
	removed map[string]bool // jobs that were removed with an earlier letter
	done    jobhost.DeadChanged
}

// jobs changes the letters of the jobs that were named.
func (c *deadChange) jobs(ctx context.Context) error {
	for i, id := range c.change.Jobs {
		job, err := c.queue.Job(ctx, id)
		if err != nil {
			c.fail(id, 0, err)
			continue
		}
		var dead []int
		for _, t := range job.Tasks {
			if t.State == jobhost.Dead {
				dead = append(dead, t.Index)
			}
		}
		if len(dead) == 0 {
			c.fail(id, 0, &jobhost.Error{Code: jobhost.CodeConflict, Message: "job " + id + " has no dead task: it is " + job.State.String()})
			continue
		}
		stopped, err := c.tasks(ctx, id, dead)
		if err != nil {
			return err
		}
		if stopped {
			for _, id := range c.change.Jobs[i+1:] {
				c.fail(id, 0, errStopped)
			}
			return nil
		}
	}
	return nil
}

var errStopped = &jobhost.Error{
	Code: jobhost.CodeExhausted, Message: "the call ended before its turn", Hint: "call again, for this job and those after it",
}

// tasks changes the letters of a job: together, unless a rate is to be kept.
func (c *deadChange) tasks(ctx context.Context, id string, dead []int) (stopped bool, err error) {
	if c.change.Rate == 0 {
		c.done.Matched += len(dead)
		return c.together(ctx, id, dead...)
	}
	for _, task := range dead {
		c.done.Matched++
		failed := len(c.done.Failed)
		stopped, err := c.one(ctx, id, task)
		if stopped && len(c.done.Failed) == failed { // time is up
			c.fail(id, task, errStopped)
		}
		if stopped || err != nil {
			return stopped, err
		}
	}
	return false, nil
}

// matching changes the letters that match, from the cursor on.
func (c *deadChange) matching(ctx context.Context) error {
	filter := c.change.Filter
	most := cmp.Or(filter.Limit, jobhost.MaxDeadChange)
	for {
		filter.Limit = min(changePage, most-c.done.Matched)
		page, err := c.queue.Dead(ctx, filter)
		if err != nil {
			return err
		}
		for i := range page.Letters {
			letter := &page.Letters[i]
			c.done.Matched++
			stopped, err := c.one(ctx, letter.Job, letter.Task)
			if err != nil {
				return err
			}
			if stopped {
				c.done.Next = cursorOf(letter)
				return nil
			}
		}
		c.done.Next, filter.Cursor = page.Next, page.Next
		if page.Next == "" || c.done.Matched >= most || time.Since(c.began) > jobhost.MaxDeadTime {
			return nil
		}
	}
}

// cursorOf is the place just before a letter, so that it is the next one.
func cursorOf(letter *jobhost.DeadLetter) string {
	return cursorAt(record.DeadPlace{DiedAt: record.MillisOf(letter.DiedAt) + 1, Key: 1})
}

// one changes a letter. The error is the context's; what else goes wrong is
// noted. stopped says that the call must end before it: time is up, or there
// is no room for it in the queue.
func (c *deadChange) one(ctx context.Context, id string, task int) (stopped bool, err error) {
	var due time.Duration
	if !c.change.DryRun && c.change.Rate > 0 {
		due = time.Duration(float64(c.done.Changed) / c.change.Rate * float64(time.Second))
	}
	// Where the rate says that it is too late, the next call must not begin at once.
	late := due >= jobhost.MaxDeadTime
	if err := sleepUntil(ctx, c.began.Add(min(due, jobhost.MaxDeadTime))); err != nil {
		return false, err
	}
	if late || time.Since(c.began) > jobhost.MaxDeadTime {
		c.done.Matched--
		return true, nil
	}
	return c.together(ctx, id, task)
}

// together changes letters of one job in one operation.
func (c *deadChange) together(ctx context.Context, id string, tasks ...int) (stopped bool, err error) {
	if !c.change.DryRun {
		err = c.apply(ctx, id, tasks)
	}
	switch {
	case err == nil:
		c.done.Changed += len(tasks)
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case jobhost.CodeOf(err) == jobhost.CodeUnavailable:
		return false, err
	default:
		c.fail(id, tasks[0], err)
		stopped = jobhost.CodeOf(err) == jobhost.CodeExhausted
	}
	return stopped, nil
}

func (c *deadChange) apply(ctx context.Context, id string, tasks []int) error {
	if c.change.Action == jobhost.DeadRetry {
		_, err := c.queue.retry(ctx, id, tasks)
		return err
	}
	if c.removed[id] {
		return nil // with another letter of the job
	}
	if c.removed == nil {
		c.removed = map[string]bool{}
	}
	err := c.queue.Delete(ctx, id)
	c.removed[id] = err == nil
	return err
}

// mostFaults is how many letters that could not be changed are listed.
const mostFaults = 100

func (c *deadChange) fail(id string, task int, err error) {
	if len(c.done.Failed) >= mostFaults {
		return
	}
	e := &jobhost.Error{Code: jobhost.CodeOf(err), Message: err.Error(), Hint: jobhost.HintOf(err)}
	if inner, ok := errors.AsType[*jobhost.Error](err); ok {
		e.Message = inner.Message
	}
	c.done.Failed = append(c.done.Failed, jobhost.DeadFault{Job: id, Task: task, Error: e})
}

func sleepUntil(ctx context.Context, t time.Time) error {
	if !time.Now().Before(t) {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
