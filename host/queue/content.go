package queue

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Result returns what a task returned.
func (q *Queue) Result(ctx context.Context, id string, task int) (jobhost.Result, error) {
	content, err := q.OpenResult(ctx, id, task)
	if err != nil {
		return jobhost.Result{}, err
	}
	defer content.Close()
	result := jobhost.Result{Task: task}
	switch {
	case content.Size == 0:
		return result, nil
	case content.Size > jobhost.MaxWhole:
		return jobhost.Result{}, &jobhost.Error{
			Code:    jobhost.CodeTooLarge,
			Message: fmt.Sprintf("the result of %d bytes is larger than %d", content.Size, jobhost.MaxWhole),
			Hint:    "fetch it as a stream: jobhost job result " + id,
		}
	}
	result.Data, err = wholeOf(&content)
	return result, err
}

// OpenResult returns what a task returned as a stream.
func (q *Queue) OpenResult(ctx context.Context, id string, task int) (jobhost.Content, error) {
	stored, err := q.record(ctx, id)
	if err != nil {
		return jobhost.Content{}, err
	}
	if task < 0 || task >= len(stored.Tasks) {
		return jobhost.Content{}, &jobhost.Error{
			Code:    jobhost.CodeNotFound,
			Field:   "task",
			Message: fmt.Sprintf("job %s has no task %d, it has %d", id, task, len(stored.Tasks)),
		}
	}
	t := &stored.Tasks[task]
	switch {
	case t.Status != record.Succeeded:
		job := q.describe(stored)
		return jobhost.Content{}, &jobhost.Error{
			Code:    jobhost.CodeConflict,
			Message: fmt.Sprintf("job %s has no result: it is %s", id, job.Tasks[task].State),
			Hint:    "jobhost job why " + id,
		}
	case t.ResultRef != "":
		content, err := q.objects.openRef(ctx, t.ResultRef)
		if err != nil {
			return jobhost.Content{}, fmt.Errorf("open result: %w", err)
		}
		return content, nil
	case t.ResultSize == 0:
		return contentOf(nil), nil
	}
	data, err := q.store.Result(ctx, t.Key)
	return contentOf(data), err
}

// OpenOutput returns what a workflow returned as a stream: data, or the object of a name.
func (q *Queue) OpenOutput(ctx context.Context, data []byte, ref string) (jobhost.Content, error) {
	if ref == "" {
		return contentOf(data), nil
	}
	content, err := q.objects.openRef(ctx, ref)
	if err != nil {
		return jobhost.Content{}, fmt.Errorf("open output: %w", err)
	}
	return content, nil
}

// OpenPayload returns the payload of a job as a stream.
func (q *Queue) OpenPayload(ctx context.Context, id string) (jobhost.Content, error) {
	stored, err := q.record(ctx, id)
	if err != nil {
		return jobhost.Content{}, err
	}
	switch {
	case stored.Damage != nil:
		return jobhost.Content{}, stored.Damage
	case stored.Ref != "":
		return q.OpenInput(ctx, &stored.JobSpec)
	case stored.PayloadSize > len(stored.Payload):
		return jobhost.Content{}, &jobhost.Error{
			Code:    jobhost.CodeNotFound,
			Message: fmt.Sprintf("each task of job %s has a payload of its own", id),
		}
	}
	return contentOf(stored.Payload), nil
}

func contentOf(data []byte) jobhost.Content {
	return jobhost.Content{ReadCloser: io.NopCloser(bytes.NewReader(data)), Size: int64(len(data))}
}
