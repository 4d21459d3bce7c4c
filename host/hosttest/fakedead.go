package hosttest

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/course"
)

// Dead implements [jobhost.DeadLetters]. Cursors are numbers of letters.
func (f *Fake) Dead(_ context.Context, filter jobhost.DeadFilter) (jobhost.DeadPage, error) {
	if err := filter.Check(); err != nil {
		return jobhost.DeadPage{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	skip := 0
	if filter.Cursor != "" {
		var err error
		if skip, err = strconv.Atoi(filter.Cursor); err != nil {
			return jobhost.DeadPage{}, problem(jobhost.CodeInvalid, "cursor", "the cursor is not one that a list returned")
		}
	}
	all := f.lettersLocked(&filter)
	page := jobhost.DeadPage{Letters: all[min(skip, len(all)):]}
	if limit := cmp.Or(filter.Limit, 50); len(page.Letters) > limit {
		page.Letters, page.Next = page.Letters[:limit], strconv.Itoa(skip+limit)
	}
	return page, nil
}

// lettersLocked returns the letters that match, the latest first.
func (f *Fake) lettersLocked(filter *jobhost.DeadFilter) []jobhost.DeadLetter {
	letters := []jobhost.DeadLetter{}
	for _, job := range slices.Backward(f.order) {
		for i := len(job.tasks) - 1; i >= 0; i-- {
			if letter := job.tasks[i].letter; letter != nil && letterMatches(letter, filter) {
				letters = append(letters, *letter)
			}
		}
	}
	slices.SortStableFunc(letters, func(a, b jobhost.DeadLetter) int { return b.DiedAt.Compare(a.DiedAt) })
	return letters
}

func letterMatches(l *jobhost.DeadLetter, f *jobhost.DeadFilter) bool {
	for k, v := range f.Labels {
		if have, ok := l.Labels[k]; !ok || have != v {
			return false
		}
	}
	return (f.Worker == "" || f.Worker == l.Worker) && (f.Code == "" || f.Code == l.Code) &&
		(f.Category == "" || f.Category == l.Category) && !l.DiedAt.Before(f.After) &&
		(f.Before.IsZero() || l.DiedAt.Before(f.Before)) && (f.Retried || !l.Retried) &&
		strings.Contains(strings.ToLower(l.Job+"\n"+l.Code+"\n"+l.Message), strings.ToLower(f.Text))
}

// buryLocked makes a letter of a task that died.
func (f *Fake) buryLocked(job *fakeJob, i int, failure *jobhost.Failure) {
	job.tasks[i].letter = &jobhost.DeadLetter{
		Job: job.spec.ID, Task: i, Worker: job.spec.Worker, Labels: job.spec.Labels,
		Code: failure.Code, Category: failure.Category, Severity: failure.Severity, Message: failure.Message,
		Attempts: failure.Attempt, CreatedAt: job.created, DiedAt: failure.EndedAt,
	}
}

// DeadSummary implements [jobhost.DeadLetters]. It knows of letters, not of
// deaths, and of the last day only.
func (f *Fake) DeadSummary(_ context.Context, query jobhost.DeadQuery) (jobhost.DeadSummary, error) {
	now := time.Now().UTC()
	s := jobhost.DeadSummary{After: now.Add(-24 * time.Hour).Truncate(time.Hour), Before: now.Add(time.Hour).Truncate(time.Hour)}
	codes, categories, workers := map[string]int64{}, map[string]int64{}, map[string]int64{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lettersLocked(&jobhost.DeadFilter{Worker: query.Worker, Retried: true}) {
		s.Deaths++
		codes[l.Code]++
		categories[string(l.Category)]++
		workers[l.Worker]++
	}
	count := func(numbers map[string]int64) []jobhost.DeathCount {
		list := []jobhost.DeathCount{}
		for name, n := range numbers {
			list = append(list, jobhost.DeathCount{Name: name, Deaths: n})
		}
		slices.SortFunc(list, func(a, b jobhost.DeathCount) int {
			return cmp.Or(cmp.Compare(b.Deaths, a.Deaths), strings.Compare(a.Name, b.Name))
		})
		return list
	}
	s.Codes, s.Categories, s.Workers = count(codes), count(categories), count(workers)
	s.Trend = []jobhost.DeathTime{{Since: s.After, Deaths: s.Deaths}}
	return s, nil
}

// ChangeDead implements [jobhost.DeadLetters]. It takes no notice of a rate.
func (f *Fake) ChangeDead(ctx context.Context, change jobhost.DeadChange) (jobhost.DeadChanged, error) {
	if err := change.Check(); err != nil {
		return jobhost.DeadChanged{}, err
	}
	done := jobhost.DeadChanged{DryRun: change.DryRun}
	f.mu.Lock()
	letters := f.lettersLocked(&change.Filter)
	if len(change.Jobs) > 0 {
		letters = slices.DeleteFunc(f.lettersLocked(&jobhost.DeadFilter{}), func(l jobhost.DeadLetter) bool {
			return !slices.Contains(change.Jobs, l.Job)
		})
	}
	f.mu.Unlock()
	for _, id := range change.Jobs {
		if !slices.ContainsFunc(letters, func(l jobhost.DeadLetter) bool { return l.Job == id }) {
			done.Failed = append(done.Failed, jobhost.DeadFault{Job: id, Error: problem(jobhost.CodeConflict, "", "job %s has no dead task", id)})
		}
	}
	if most := cmp.Or(change.Filter.Limit, jobhost.MaxDeadChange); len(change.Jobs) == 0 && len(letters) > most {
		letters, done.Next = letters[:most], "0"
	}
	for i := range letters {
		done.Matched++
		if err := f.changeLetter(ctx, &letters[i], &change); err != nil {
			done.Failed = append(done.Failed, jobhost.DeadFault{Job: letters[i].Job, Task: letters[i].Task, Error: problem(jobhost.CodeOf(err), "", "%v", err)})
			continue
		}
		done.Changed++
	}
	return done, nil
}

func (f *Fake) changeLetter(ctx context.Context, letter *jobhost.DeadLetter, change *jobhost.DeadChange) error {
	switch {
	case change.DryRun:
		return nil
	case change.Action == jobhost.DeadDelete:
		err := f.Delete(ctx, letter.Job)
		if jobhost.CodeOf(err) == jobhost.CodeNotFound {
			return nil // with another letter
		}
		return err
	}
	_, err := f.RetryTask(ctx, letter.Job, letter.Task)
	return err
}

// CancelTask implements [jobhost.Controller].
func (f *Fake) CancelTask(_ context.Context, id string, task int) (jobhost.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	job, err := f.findTaskLocked(id, task)
	if err != nil {
		return jobhost.Job{}, err
	}
	switch t := &job.tasks[task]; {
	case !t.State.Ended():
		f.endLocked(job, task, jobhost.Cancelled, jobhost.EventCancelled, nil)
	case t.State != jobhost.Cancelled:
		return jobhost.Job{}, problem(jobhost.CodeConflict, "", "task %d has ended: it is %s", task, t.State)
	}
	return job.describe(true), nil
}

// RetryTask implements [jobhost.Controller].
func (f *Fake) RetryTask(_ context.Context, id string, task int) (jobhost.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	job, err := f.findTaskLocked(id, task)
	if err != nil {
		return jobhost.Job{}, err
	}
	if s := job.tasks[task].State; s != jobhost.Dead && s != jobhost.Cancelled {
		return jobhost.Job{}, problem(jobhost.CodeConflict, "", "task %d is %s", task, s)
	}
	return f.reviveLocked(job, []int{task}), nil
}

func (f *Fake) findTaskLocked(id string, task int) (*fakeJob, error) {
	job, err := f.findLocked(id)
	if err == nil && (task < 0 || task >= len(job.tasks)) {
		err = problem(jobhost.CodeNotFound, "task", "job %s has no task %d", id, task)
	}
	return job, err
}

// reviveLocked makes tasks ready again and returns the job as it is then.
func (f *Fake) reviveLocked(job *fakeJob, tasks []int) jobhost.Job {
	for _, i := range tasks {
		t, now := &job.tasks[i], time.Now().UTC()
		t.Task = jobhost.Task{Index: i, State: jobhost.Ready, ReadyAt: now, Course: t.Course}
		t.turn()
		f.tellTaskLocked(job, i, jobhost.EventRetrying, nil)
		if t.letter != nil {
			t.letter.Retried, t.letter.RetriedAt = true, &now
		}
	}
	f.open += len(tasks)
	if job.ended != nil {
		job.ended, job.done = nil, make(chan struct{})
	}
	if job.workflow != nil {
		f.happenLocked(job.workflow, course.Event{What: course.JobRevived, Run: job.run})
	}
	answer := job.describe(true)
	for _, i := range tasks {
		f.scheduleLocked(job, i)
	}
	return answer
}
