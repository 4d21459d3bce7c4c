package queue

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/httpurl"
)

// Webhooks knows how receivers are notified over HTTP: by jobs of
// [jobhost.WebhookWorker]. Its methods must not block.
type Webhooks interface {
	// Judge returns why jobs may not have a callback to a URL, with code denied;
	// nil = they may.
	Judge(url httpurl.URL) error
	// Ended returns the job that notifies a URL of the end of a job.
	Ended(url string, ended *jobhost.Ended) jobhost.Spec
	// Dead returns the job that notifies of a dead letter; false = there is no receiver.
	Dead(letter *jobhost.DeadLetter) (jobhost.Spec, bool)
}

// noWebhooks is a [Webhooks] without receivers.
type noWebhooks struct{}

func (noWebhooks) Judge(httpurl.URL) error {
	return &jobhost.Error{Code: jobhost.CodeDenied, Field: "callback", Message: "this host sends no callbacks to URLs"}
}

func (noWebhooks) Ended(string, *jobhost.Ended) jobhost.Spec {
	return jobhost.Spec{Worker: jobhost.WebhookWorker}
}

func (noWebhooks) Dead(*jobhost.DeadLetter) (jobhost.Spec, bool) { return jobhost.Spec{}, false }

// judgeCallback looks at a job's callback, whose URL it makes canonical. While
// too many deliveries wait, or their worker drains, there is no room for a further one.
func (q *Queue) judgeCallback(spec *jobhost.Spec) error {
	if spec.Callback.URL == "" {
		return nil
	}
	u, err := httpurl.Parse(spec.Callback.URL)
	if err != nil { // the spec was checked
		return err
	}
	spec.Callback.URL = u.String()
	if err := q.cfg.Webhooks.Judge(u); err != nil {
		return err
	}
	l := q.lanes.of(jobhost.WebhookWorker)
	if l == nil {
		return nil
	}
	// The room is not kept: the end of the job is delivered, whatever waits then.
	if err := l.accept(1); err != nil {
		return fmt.Errorf("callback: %w", err)
	}
	l.vacate(1)
	return nil
}

// then returns what makes the jobs that notify receivers of an operation that may end a
// task; nil if there are none. settle is that operation, if it is one.
func (q *Queue) then(job *record.JobSpec, settle *record.Settle) func(record.End) []*record.JobSpec {
	dead := q.tellDead(job, settle)
	if job.Callback == (jobhost.Callback{}) && dead == nil {
		return nil
	}
	at := q.clock.now().UTC()
	return func(end record.End) (jobs []*record.JobSpec) {
		if dead != nil {
			jobs = append(jobs, dead)
		}
		if job.Callback == (jobhost.Callback{}) || !end.Job {
			return jobs
		}
		counts := countsOf(end.Final)
		ended := jobhost.Ended{
			Job: job.ID, Worker: job.Worker, State: jobhost.JobState(&counts), Labels: job.Labels,
			EndedAt: at, Tasks: counts.Numbers(),
		}
		if job.Tasks == 1 && settle != nil {
			ended.Failure = settle.Failure
			if ended.State == jobhost.Succeeded {
				ended.Failure = nil
			}
			if utf8.Valid(settle.Result) {
				ended.Result = string(settle.Result)
			} else {
				ended.ResultBase64 = settle.Result
			}
		}
		return append(jobs, q.tellEnded(job, &ended))
	}
}

// tellEnded makes the job that notifies of another one's end.
func (q *Queue) tellEnded(job *record.JobSpec, ended *jobhost.Ended) *record.JobSpec {
	spec := q.endedSpec(job, ended)
	if len(spec.Payload) > q.cfg.MaxPayload {
		ended.Result, ended.ResultBase64 = "", nil
		spec = q.endedSpec(job, ended)
	}
	spec.Priority = job.Priority
	return q.fill(q.settingsOf(spec.Worker), &spec)
}

func (q *Queue) endedSpec(job *record.JobSpec, ended *jobhost.Ended) jobhost.Spec {
	if job.Callback.URL != "" {
		return q.cfg.Webhooks.Ended(job.Callback.URL, ended)
	}
	payload, err := json.Marshal(ended)
	if err != nil { // no type of the above can fail; then at least the end is delivered
		payload = nil
	}
	return jobhost.Spec{Worker: job.Callback.Worker, Payload: payload, ContentType: "application/json"}
}

// tellDead makes the job that notifies of a task that a settlement makes dead; nil =
// it does not, or there is no receiver. Failed deliveries are not reported this
// way: they would only make more deliveries.
func (q *Queue) tellDead(job *record.JobSpec, settle *record.Settle) *record.JobSpec {
	if settle == nil || settle.Status != record.Dead || job.Worker == jobhost.WebhookWorker {
		return nil
	}
	f := settle.Failure
	spec, wanted := q.cfg.Webhooks.Dead(&jobhost.DeadLetter{
		Job: job.ID, Task: f.Task, Worker: job.Worker, Labels: job.Labels,
		Code: f.Code, Category: f.Category, Severity: f.Severity, Message: f.Message, Attempts: settle.Attempt,
		CreatedAt: job.CreatedAt.Time(), DiedAt: settle.EndedAt.Time(),
	})
	if !wanted {
		return nil
	}
	spec.Priority = job.Priority
	return q.fill(q.settingsOf(spec.Worker), &spec)
}

// settingsOf returns what holds for jobs of a worker that say nothing else.
func (q *Queue) settingsOf(worker string) *Worker {
	if l := q.lanes.of(worker); l != nil && l.worker.Load() != nil {
		return l.worker.Load()
	}
	return &Worker{Retry: jobhost.DefaultRetry()}
}

func countsOf(final record.StatusCounts) jobhost.Counts {
	return jobhost.Counts{
		jobhost.Succeeded: final[record.Succeeded],
		jobhost.Dead:      final[record.Dead],
		jobhost.Cancelled: final[record.Cancelled],
	}
}

// follow puts jobs that were submitted with the end of a task into their lanes,
// over the capacity if need be. The caller holds lanes.opening since before
// the commit.
func (q *Queue) follow(result record.OpResult) {
	for _, job := range result.Then {
		q.enter(q.lanes.of(job.Worker), job, 0)
	}
}
