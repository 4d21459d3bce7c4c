package flowtest

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// job is a job of a step.
type job struct {
	run      *Run
	of       machine.Run
	step     *jobhost.Step
	worker   string
	entry    string
	kind     string // content type
	payload  []byte
	items    [][]byte // of the tasks, instead of payload
	retry    jobhost.RetryPolicy
	parallel int // tasks that may run at one time

	ready   []attempt
	running int
	open    int // tasks that have not ended
	results [][]byte
	dead    *jobhost.Failure // of the first dead task
	waits   []*event         // events to take back when the job is cancelled
}

type attempt struct{ task, number int }

// submit begins a job.
func (r *Run) submit(s *machine.Submit) {
	step := &r.def.plan.Workflow.Steps[s.Run.Step]
	j := &job{
		run: r, of: s.Run, step: step, worker: step.Worker, entry: step.Entry, kind: cmp.Or(step.ContentType, s.Payload.ContentType),
		items: s.Items, retry: step.Retry.Over(jobhost.DefaultRetry()), parallel: step.MaxParallel,
		open: s.Tasks, results: make([][]byte, s.Tasks),
	}
	j.retry.Jitter = 0
	if s.Run.Fallback {
		j.worker, j.entry = step.Fallback, ""
	}
	if j.parallel == 0 {
		j.parallel = s.Tasks
	}
	if s.Items == nil {
		j.payload = r.compose(&s.Payload)
	}
	for task := range s.Tasks {
		j.ready = append(j.ready, attempt{task, 1})
	}
	r.jobs[s.Run] = j
	j.start()
}

// start starts the next tasks that may run.
func (j *job) start() {
	for j.running < j.parallel && len(j.ready) > 0 {
		next := j.ready[0]
		j.ready = j.ready[1:]
		j.running++
		j.later(0, func() { j.attempt(next) })
	}
}

// later schedules something for the job, unless that is cancelled before.
func (j *job) later(after time.Duration, do func()) {
	k := j.run.kit
	j.waits = append(j.waits, k.at(k.now.Add(after), do))
}

// cancel cancels the job.
func (j *job) cancel() {
	for _, e := range j.waits {
		e.gone = true
	}
	delete(j.run.jobs, j.of)
}

func (j *job) attempt(a attempt) {
	k := j.run.kit
	k.t.Helper()
	f := k.workers[j.worker]
	if f == nil {
		k.fatalf("step %s of workflow %s has worker %q, for which there is no function: add k.Worker(%q, …)", j.step.Name, j.run.Name(), j.worker, j.worker)
		return
	}
	c := &Call{
		Run: j.run, Step: j.step.Name, Worker: j.worker, Entry: j.entry, Input: j.payload, ContentType: j.kind,
		Task: a.task, Tasks: len(j.results), Attempt: a.number, Fallback: j.of.Fallback,
	}
	if j.items != nil {
		c.Input = j.items[a.task]
	}
	j.run.steps[j.of.Step].attempts++
	began := k.now
	value, err := f(c)
	var result []byte
	if err == nil {
		result = k.encode(value)
	}
	if limit := time.Duration(j.step.Timeout); limit > 0 && c.took > limit {
		c.took = limit
		err = Fail(jobhost.Failure{
			Code: jobhost.FailTimeout, Category: jobhost.CategoryTimeout, Message: fmt.Sprintf("the attempt took longer than %v", limit), Retryable: true,
		})
	}
	j.later(c.took, func() { j.ended(a, began, result, err) })
}

// ended handles the end of an attempt.
func (j *job) ended(a attempt, began time.Time, result []byte, err error) {
	k := j.run.kit
	j.running--
	if err == nil {
		j.results[a.task] = result
		j.settled()
		return
	}
	f := failureOf(err)
	f.Task, f.Attempt, f.StartedAt, f.EndedAt = a.task, a.number, began, k.now
	j.run.tell(jobhost.TraceEntry{
		Step: j.step.Name, What: "attempt", Task: a.task, Attempt: a.number, Took: jobhost.Duration(k.now.Sub(began)), Failure: &f,
	})
	if !f.Retryable || a.number >= j.retry.MaxAttempts {
		if j.dead == nil {
			j.dead = &f
		}
		j.settled()
		return
	}
	delay := j.retry.Delay(a.number+1, 0.5)
	if own, ok := errors.AsType[*failure](err); ok {
		delay = max(delay, own.after)
	}
	j.later(delay, func() {
		j.ready = append(j.ready, attempt{a.task, a.number + 1})
		j.start()
	})
	j.start()
	j.run.deliver(machine.Event{What: machine.JobRetrying, Run: j.of, Failure: &f})
}

// settled handles the end of a task.
func (j *job) settled() {
	if j.open--; j.open > 0 {
		j.start()
		return
	}
	delete(j.run.jobs, j.of)
	if j.dead != nil {
		j.run.deliver(machine.Event{What: machine.JobDead, Run: j.of, Failure: j.dead})
		return
	}
	e := machine.Event{What: machine.JobSucceeded, Run: j.of}
	if j.items == nil && len(j.results) == 1 {
		e.Output = present(j.results[0])
		j.run.data[machine.Source{Kind: machine.Result, Run: j.of}] = e.Output
	} else {
		j.run.data[machine.Source{Kind: machine.Results, Run: j.of}] = machine.List(j.results)
	}
	j.run.deliver(e)
}

// present turns nil data into empty data.
func present(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}
