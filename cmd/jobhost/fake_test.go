package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/jobhost/jobhost"
)

// testTime is when everything happens in tests.
var testTime = time.Date(2026, 2, 3, 15, 4, 5, 0, time.UTC)

// hostile is what a bad server or worker would like a terminal to get.
const hostile = "\x1b[31mred\x1b]0;title\x07\r\u009b2J\u202eevil\x7f\nsecond line"

// fakeServer runs jobs as they are submitted. What becomes of one depends on
// its payload: one with "fail" is dead, one with "hold" stays ready, "binary"
// returns bytes that are no text, and everything else the number of its words.
// All jobs of the worker "hostile" are full of escape sequences.
type fakeServer struct {
	fakeStates
	realParts

	// onBatch and onWait are called first, if they are set.
	onBatch func(specs []jobhost.Spec) ([]jobhost.Submitted, error)
	onWait  func(ctx context.Context, job *fakeJob)

	mu   sync.Mutex // protects the jobs
	jobs map[string]*fakeJob
	ids  []string

	uploads map[string][]byte
}

type fakeJob struct {
	jobhost.Job
	spec  jobhost.Spec
	ended chan struct{}
}

func newFakeServer(t testing.TB) *fakeServer {
	s := newFakeQueue()
	s.realParts = openParts(t)
	return s
}

// newFakeQueue returns a server of jobs only, which may be in a bubble of synctest.
func newFakeQueue() *fakeServer {
	s := &fakeServer{jobs: map[string]*fakeJob{}}
	s.fakeStates = newFakeStates(s)
	return s
}

func notFound(id string) error {
	return &jobhost.Error{Code: jobhost.CodeNotFound, Message: fmt.Sprintf("there is no job %q", id)}
}

func (s *fakeServer) Submit(_ context.Context, spec jobhost.Spec) (jobhost.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains([]string{"wordcount", "vowels", "loganalyzer", "hostile"}, spec.Worker) {
		return jobhost.Receipt{}, &jobhost.Error{
			Code: jobhost.CodeNotFound, Field: "worker",
			Message: fmt.Sprintf("there is no worker %q", spec.Worker), Hint: "jobhost worker ls lists them",
		}
	}
	if spec.PayloadRef != "" {
		spec.Payload, spec.PayloadRef = s.uploads[spec.PayloadRef], ""
	} else if len(spec.Payload) > 1<<20 {
		return jobhost.Receipt{}, &jobhost.Error{Code: jobhost.CodeTooLarge, Message: "the payload is larger than 1MiB"}
	}
	if to := spec.Callback.URL; to != "" && !strings.HasPrefix(to, "https://hooks.example.com/") {
		return jobhost.Receipt{}, &jobhost.Error{
			Code: jobhost.CodeDenied, Field: "callback", Message: "callbacks to URLs are not allowed", Hint: "the manifest has no section [webhook]",
		}
	}
	id := cmp.Or(spec.ID, fmt.Sprintf("job-%d", len(s.ids)+1))
	if j, ok := s.jobs[id]; ok {
		if !bytes.Equal(j.spec.Payload, spec.Payload) {
			return jobhost.Receipt{}, &jobhost.Error{Code: jobhost.CodeConflict, Message: "the id " + id + " is taken by another job", Hint: "use another id"}
		}
		return jobhost.Receipt{ID: id, State: j.State, Deduplicated: true}, nil
	}
	j := &fakeJob{spec: spec, ended: make(chan struct{})}
	j.Job = jobhost.Job{
		ID: id, Worker: spec.Worker, State: jobhost.Ready, Priority: cmp.Or(spec.Priority, jobhost.Normal), Entry: spec.Entry,
		ContentType: spec.ContentType, Labels: spec.Labels, PayloadSize: len(spec.Payload), MaxAttempts: cmp.Or(spec.MaxAttempts, 3),
		Timeout: jobhost.Duration(cmp.Or(spec.Timeout, 30*time.Second)), CreatedAt: testTime, TaskCount: max(spec.Tasks, 1),
	}
	if spec.Callback != (jobhost.Callback{}) {
		j.Callback = &spec.Callback
	}
	for i := range j.TaskCount {
		j.Tasks = append(j.Tasks, jobhost.Task{Index: i, State: jobhost.Ready, ReadyAt: testTime})
	}
	s.jobs[id] = j
	s.ids = append(s.ids, id)
	switch text := string(spec.Payload); {
	case strings.Contains(text, "hold") || spec.Delay > 0:
	case strings.Contains(text, "fail"):
		s.end(j, jobhost.Dead)
	default:
		s.end(j, jobhost.Succeeded)
	}
	return jobhost.Receipt{ID: id, State: jobhost.Ready}, nil
}

// end ends a job. The caller holds mu.
func (s *fakeServer) end(j *fakeJob, state jobhost.State) {
	ended := testTime.Add(1500 * time.Millisecond)
	j.State, j.EndedAt = state, &ended
	for i := range j.Tasks {
		t := &j.Tasks[i]
		t.Course = 2
		t.State, t.Attempt, t.StartedAt, t.EndedAt = state, 1, &j.CreatedAt, &ended
		if state == jobhost.Succeeded {
			t.ResultSize, t.Fuel = len(result(j, i)), 59157
		}
	}
	if state == jobhost.Dead {
		f := jobhost.Failure{
			Code: "bad_input", Category: jobhost.CategoryValidation, Severity: jobhost.SeverityError,
			Message: "the input says so", Attempt: 1, StartedAt: testTime, EndedAt: ended,
		}
		if j.Worker == "hostile" {
			f.Code, f.Message, f.Stack, f.Context = hostile, hostile, hostile, hostile
			f.Category, f.Severity = hostile, hostile
		}
		j.Failures = []jobhost.Failure{f}
	}
	close(j.ended)
}

func result(j *fakeJob, task int) []byte {
	text := string(j.spec.Payload)
	switch {
	case strings.Contains(text, "binary"):
		return []byte{0x1b, '[', 'H', 0xff, 0}
	case strings.Contains(text, "lines"):
		return []byte("one\ntwo\n")
	case j.TaskCount > 1:
		return fmt.Appendf(nil, "task %d", task)
	}
	return fmt.Appendf(nil, "%d words", len(strings.FieldsFunc(text, unicode.IsSpace)))
}

func (s *fakeServer) SubmitBatch(ctx context.Context, specs []jobhost.Spec) ([]jobhost.Submitted, error) {
	if s.onBatch != nil {
		if answers, err := s.onBatch(specs); answers != nil || err != nil {
			return answers, err
		}
	}
	answers := make([]jobhost.Submitted, len(specs))
	for i := range specs {
		answers[i].Receipt, answers[i].Err = s.Submit(ctx, specs[i])
	}
	return answers, nil
}

func (s *fakeServer) find(id string) (*fakeJob, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j, ok := s.jobs[id]; ok {
		return j, nil
	}
	return nil, notFound(id)
}

func (s *fakeServer) Job(_ context.Context, id string) (jobhost.Job, error) {
	j, err := s.find(id)
	if err != nil {
		return jobhost.Job{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return j.Job, nil
}

func (s *fakeServer) Jobs(_ context.Context, f jobhost.Filter) (jobhost.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var page jobhost.Page
	seen := f.Cursor == ""
	for _, id := range slices.Backward(s.ids) {
		j := s.jobs[id]
		switch {
		case !seen:
			seen = id == f.Cursor
		case j == nil, f.Worker != "" && j.Worker != f.Worker, f.State != 0 && j.State != f.State,
			j.CreatedAt.Before(f.After), !f.Before.IsZero() && !j.CreatedAt.Before(f.Before):
		case len(page.Jobs) == cmp.Or(f.Limit, 50):
			page.Next = page.Jobs[len(page.Jobs)-1].ID
			return page, nil
		default:
			short := j.Job
			short.Tasks, short.Failures = nil, nil
			page.Jobs = append(page.Jobs, short)
		}
	}
	return page, nil
}

func (s *fakeServer) Result(_ context.Context, id string, task int) (jobhost.Result, error) {
	j, err := s.find(id)
	if err != nil {
		return jobhost.Result{}, err
	}
	if task >= j.TaskCount {
		return jobhost.Result{}, &jobhost.Error{Code: jobhost.CodeNotFound, Message: fmt.Sprintf("job %s has no task %d", id, task)}
	}
	if j.State != jobhost.Succeeded {
		return jobhost.Result{}, &jobhost.Error{Code: jobhost.CodeConflict, Message: fmt.Sprintf("job %s has no result: it is %v", id, j.State)}
	}
	return jobhost.Result{Task: task, Data: result(j, task)}, nil
}

func (s *fakeServer) Logs(_ context.Context, id string) ([]jobhost.AttemptLog, error) {
	j, err := s.find(id)
	if err != nil {
		return nil, err
	}
	lines := []string{"info counting", "warn few words"}
	if j.Worker == "hostile" {
		lines = []string{hostile}
	}
	logs := []jobhost.AttemptLog{{Attempt: 1, Lines: lines}}
	if j.State == jobhost.Dead {
		logs = append(logs, jobhost.AttemptLog{Attempt: 2, Lines: lines, Dropped: 7})
	}
	return logs, nil
}

func (s *fakeServer) Why(_ context.Context, id string) (jobhost.Why, error) {
	j, err := s.find(id)
	if err != nil {
		return jobhost.Why{}, err
	}
	w := jobhost.Why{ID: id, State: j.State, Code: "slots", Reason: "all slots of " + j.Worker + " are busy", Ends: "a slot becomes free"}
	if j.Worker == "hostile" {
		w.Code, w.Reason, w.Ends = hostile, hostile, hostile
	}
	return w, nil
}

func (s *fakeServer) Cancel(_ context.Context, id string) (jobhost.Job, error) {
	j, err := s.find(id)
	if err != nil {
		return jobhost.Job{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.State.Ended() {
		return jobhost.Job{}, &jobhost.Error{Code: jobhost.CodeConflict, Message: fmt.Sprintf("job %s has ended: it is %v", id, j.State)}
	}
	s.end(j, jobhost.Cancelled)
	return j.Job, nil
}

func (s *fakeServer) Retry(_ context.Context, id string) (jobhost.Job, error) {
	j, err := s.find(id)
	if err != nil {
		return jobhost.Job{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.State != jobhost.Dead && j.State != jobhost.Cancelled {
		return jobhost.Job{}, &jobhost.Error{Code: jobhost.CodeConflict, Message: fmt.Sprintf("job %s has nothing to retry: it is %v", id, j.State)}
	}
	j.State, j.EndedAt, j.ended = jobhost.Ready, nil, make(chan struct{})
	return j.Job, nil
}

func (s *fakeServer) Delete(_ context.Context, id string) error {
	j, err := s.find(id)
	if err != nil {
		return err
	}
	if !j.State.Ended() {
		return &jobhost.Error{Code: jobhost.CodeConflict, Message: fmt.Sprintf("job %s is open: it is %v", id, j.State), Hint: "cancel it first"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, id)
	return nil
}

func (s *fakeServer) Wait(ctx context.Context, id string) (jobhost.Job, error) {
	j, err := s.find(id)
	if err != nil {
		return jobhost.Job{}, err
	}
	if s.onWait != nil {
		s.onWait(ctx, j)
	}
	select {
	case <-j.ended:
		return s.Job(ctx, id)
	case <-ctx.Done():
		return j.Job, context.Cause(ctx)
	}
}

// Events yields a started event and, when the job has ended, that.
func (s *fakeServer) Events(ctx context.Context, q jobhost.EventQuery) iter.Seq2[jobhost.Event, error] {
	if q.Workflow != "" {
		return s.workflowEvents(ctx, q)
	}
	return func(yield func(jobhost.Event, error) bool) {
		started := jobhost.Event{Seq: 1, Kind: jobhost.EventStarted, Time: testTime, Job: cmp.Or(q.Job, "job-1"), Worker: "wordcount", Attempt: 1}
		output := started
		output.Seq, output.Kind, output.Data = 2, jobhost.EventOutput, []byte(hostile)
		if !yield(started, nil) || !yield(output, nil) {
			return
		}
		if q.Job == "" {
			yield(jobhost.Event{}, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the host stops"})
			return
		}
		job, err := s.Wait(ctx, q.Job)
		if err == nil {
			if !yield(jobhost.Event{Seq: 3, Kind: jobhost.EventEnded, Time: testTime, Job: job.ID, Worker: job.Worker, State: job.State}, nil) {
				return
			}
			<-ctx.Done()
		}
		yield(jobhost.Event{}, context.Cause(ctx))
	}
}

func (s *fakeServer) Workers(context.Context) ([]jobhost.WorkerStatus, error) {
	worker := func(name string) jobhost.WorkerStatus {
		return jobhost.WorkerStatus{
			Name: name, Plugin: name + ".wasm", SHA256: strings.Repeat("0123456789abcdef", 4), Version: 3, LoadedAt: testTime, ABI: "jobhost", Entry: "jh_run",
			Mode: jobhost.WorkerRunning, Slots: 2, Busy: 1, PoolSize: 2, QueueCapacity: 1000, Timeout: jobhost.Duration(30 * time.Second), MemoryBytes: 64 << 20,
			Retry: jobhost.DefaultRetry().String(), Tasks: jobhost.TaskNumbers{"ready": 12, "running": 1, "succeeded": 1234, "dead": 1},
		}
	}
	disabled := worker("loganalyzer")
	disabled.Disabled = "5 failures within a minute"
	return []jobhost.WorkerStatus{disabled, worker("vowels"), worker("wordcount")}, nil
}

func (s *fakeServer) PauseWorker(ctx context.Context, name string) (jobhost.WorkerStatus, error) {
	return s.operate(ctx, name, func(w *jobhost.WorkerStatus) { w.Mode = jobhost.WorkerPaused })
}

func (s *fakeServer) DrainWorker(ctx context.Context, name string) (jobhost.WorkerStatus, error) {
	return s.operate(ctx, name, func(w *jobhost.WorkerStatus) { w.Mode = jobhost.WorkerDraining })
}

func (s *fakeServer) ResumeWorker(ctx context.Context, name string) (jobhost.WorkerStatus, error) {
	return s.operate(ctx, name, func(*jobhost.WorkerStatus) {})
}

func (s *fakeServer) ScaleWorker(ctx context.Context, name string, slots int) (jobhost.WorkerStatus, error) {
	return s.operate(ctx, name, func(w *jobhost.WorkerStatus) { w.Slots = slots })
}

func (s *fakeServer) ResetBreaker(ctx context.Context, name string) (jobhost.WorkerStatus, error) {
	return s.operate(ctx, name, func(*jobhost.WorkerStatus) {})
}

// operate answers with a worker that was changed, and forgets the change.
func (s *fakeServer) operate(ctx context.Context, name string, change func(*jobhost.WorkerStatus)) (jobhost.WorkerStatus, error) {
	workers, _ := s.Workers(ctx)
	for _, w := range workers {
		if w.Name == name {
			change(&w)
			return w, nil
		}
	}
	return jobhost.WorkerStatus{}, &jobhost.Error{Code: jobhost.CodeNotFound, Field: "worker", Message: fmt.Sprintf("there is no worker %q", name)}
}

// Reload finds another version of vowels, and nothing else.
func (s *fakeServer) Reload(_ context.Context, worker string) (jobhost.Reload, error) {
	digest := strings.Repeat("0123456789abcdef", 4)
	all := []jobhost.WorkerReload{
		{Name: "loganalyzer", Change: jobhost.WorkerUnchanged, Before: digest, SHA256: digest, Version: 1},
		{Name: "new", Change: jobhost.WorkerAdded, SHA256: digest, Version: 1},
		{Name: "old", Change: jobhost.WorkerRemoved, Before: digest},
		{Name: "vowels", Change: jobhost.WorkerChanged, Before: digest, SHA256: strings.Repeat("f", 64), Version: 2},
	}
	switch worker {
	case "":
		return jobhost.Reload{Workers: all, NeedsRestart: []string{"host.listen"}}, nil
	case "broken":
		return jobhost.Reload{}, errors.Join(
			&jobhost.Error{Code: jobhost.CodeInvalid, Message: "manifest.toml:3:1: worker.broken: plugin is missing"},
			&jobhost.Error{Code: jobhost.CodeInvalid, Message: "manifest.toml:4:1: tiemout is not a setting", Hint: "did you mean timeout?"},
		)
	}
	for _, w := range all {
		if w.Name == worker {
			return jobhost.Reload{Workers: []jobhost.WorkerReload{w}}, nil
		}
	}
	return jobhost.Reload{}, &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no worker " + worker}
}
