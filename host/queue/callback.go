package queue

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
)

// then returns what makes the callback of a job, for the operation that may
// end it; nil if it has none. settle is that operation, if it is one.
func (q *Queue) then(job *JobSpec, settle *Settle) func(StatusCounts) *JobSpec {
	if job.Callback.Worker == "" {
		return nil
	}
	at := q.clock.now().UTC()
	return func(final StatusCounts) *JobSpec {
		counts := countsOf(final)
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
		return q.callback(job, &ended)
	}
}

// callback makes the job that tells of another one's end.
func (q *Queue) callback(job *JobSpec, ended *jobhost.Ended) *JobSpec {
	payload, err := json.Marshal(ended)
	if err == nil && len(payload) > q.cfg.MaxPayload {
		ended.Result, ended.ResultBase64 = "", nil
		payload, err = json.Marshal(ended)
	}
	if err != nil { // no type of the above can fail; then at least the end is told
		payload = nil
	}
	worker := &Worker{Retry: jobhost.DefaultRetry()}
	if l := q.lanes.of(job.Callback.Worker); l != nil && l.worker.Load() != nil {
		worker = l.worker.Load()
	}
	return q.fill(worker, &jobhost.Spec{
		Worker: job.Callback.Worker, Priority: job.Priority, Payload: payload, ContentType: "application/json",
	})
}

func countsOf(final StatusCounts) jobhost.Counts {
	return jobhost.Counts{
		jobhost.Succeeded: final[Succeeded],
		jobhost.Dead:      final[Dead],
		jobhost.Cancelled: final[Cancelled],
	}
}

// follow puts a callback that was submitted with the end of its job into its
// lane, over the capacity if need be. The caller holds lanes.opening since
// before the commit.
func (q *Queue) follow(result OpResult) {
	if result.Then != nil {
		q.enter(q.lanes.of(result.Then.Worker), result.Then, 0)
	}
}
