package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jobhost/jobhost"
)

// outcome is what became of a job that was submitted: of each task one, when
// it succeeded. It is what submit --wait writes as JSON.
type outcome struct {
	// Line is the line of the input, counting from 1, with --lines.
	Line         int           `json:"line,omitempty"`
	ID           string        `json:"id,omitempty"`
	Task         int           `json:"task"`
	State        jobhost.State `json:"state,omitempty"`
	Deduplicated bool          `json:"deduplicated,omitempty"`
	// Result is what the task returned if that is valid UTF-8, else Base64 is.
	Result *string `json:"result,omitempty"`
	Base64 []byte  `json:"result_base64,omitempty"`
	// Failure is the last one of a job that is dead.
	Failure *jobhost.Failure `json:"failure,omitempty"`
	// Error says why nothing is known of the job's end.
	Error *jobhost.Error `json:"error,omitempty"`

	tasks int
	sizes []int  // of the results
	data  []byte // of task 0, unless that is to be copied
	err   error  // what to tell the user if it did not succeed
}

// interruptible returns a context that ends with the first interrupt; the
// second one kills the process, as usual.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

var errPatience = errors.New("the time to wait is over")

// await waits for the end of a job, for at most a time if that isn't 0, and
// fetches the result of its first task.
func await(ctx context.Context, server jobhost.Server, id string, most time.Duration) *outcome {
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, most, errPatience)
		defer cancel()
	}
	end := &outcome{ID: id, tasks: 1}
	job, err := server.Wait(ctx, id)
	if err == nil && job.State == jobhost.Dead && len(job.Failures) == 0 {
		job, err = server.Job(ctx, id)
	}
	if err != nil {
		end.fail(stoppedWaiting(ctx, id, err))
		return end
	}
	end.State, end.tasks = job.State, max(job.TaskCount, 1)
	if job.State != jobhost.Succeeded {
		if n := len(job.Failures); n > 0 && job.State == jobhost.Dead {
			end.Failure = &job.Failures[n-1]
		}
		end.err = endedBadly(&job, end.Failure)
		return end
	}
	for i := range job.Tasks {
		end.sizes = append(end.sizes, job.Tasks[i].ResultSize)
	}
	if end.copied(0) {
		return end
	}
	result, err := server.Result(ctx, id, 0)
	if err != nil {
		end.fail(fmt.Errorf("fetch the result of job %s: %w", id, err))
		return end
	}
	end.data = result.Data
	return end
}

// copied reports whether the result of a task is so large that it is written as
// a stream.
func (o *outcome) copied(task int) bool { return task < len(o.sizes) && o.sizes[task] > streamed }

// streamed is the largest result that is in memory when it is written, in bytes.
const streamed = 4 << 20

// fail records why nothing is known of the job's end.
func (o *outcome) fail(err error) {
	o.err = err
	o.Error = &jobhost.Error{Code: jobhost.CodeOf(err), Message: err.Error(), Hint: jobhost.HintOf(err)}
}

// stoppedWaiting is the error of a wait that ended before the job did.
func stoppedWaiting(ctx context.Context, id string, err error) error {
	if ctx.Err() == nil {
		return fmt.Errorf("wait for job %s: %w", id, err)
	}
	reason := "waiting for job %s was interrupted; the job goes on"
	if errors.Is(context.Cause(ctx), errPatience) {
		reason = "job %s has not ended in time; it goes on"
	}
	return &jobhost.Error{
		Code:    jobhost.CodeUnavailable,
		Message: fmt.Sprintf(reason, id),
		Hint:    "jobhost job watch " + id,
	}
}

// endedBadly is the error of a job that ended without success.
func endedBadly(job *jobhost.Job, last *jobhost.Failure) error {
	e := &jobhost.Error{
		Code:    jobhost.CodeConflict,
		Message: fmt.Sprintf("job %s is %v", job.ID, job.State),
		Hint:    "jobhost job show " + job.ID,
	}
	if last != nil {
		e.Message += ": " + failureText(last)
	}
	return e
}

// failureText is a failure in a line: its code and its message, which may begin with the code.
func failureText(f *jobhost.Failure) string {
	code := printable(f.Code)
	if strings.HasPrefix(f.Message, code+": ") {
		return f.Message
	}
	return code + ": " + f.Message
}

// layout says what stands between results.
type layout int

const (
	asIs    layout = iota // nothing: the bytes of the result, exactly
	perLine               // a line end, unless the result has one
)
