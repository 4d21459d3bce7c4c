package await_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/await"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

// The end of a job, a request to stop, or a limit of time. What loses leaves nothing
// behind.
func ExampleJob() {
	jobs := new(board) // a host, or a client of one
	jobs.ended.Set(jobhost.Job{State: jobhost.Succeeded}, nil)
	stop := new(op.Signal)

	s := scope.New(context.Background(), "example")
	end, err := op.PerformRaw(op.Choice(
		op.Wrap(await.Job(s, jobs, "report-7"), func(job jobhost.Job) (string, error) { return job.ID + " has " + job.State.String(), nil }),
		op.Wrap(stop.Wait(), func(struct{}) (string, error) { return "told to stop", nil }),
		op.Wrap(op.After(time.Minute), func(time.Time) (string, error) { return "took too long", nil }),
	))
	fmt.Println(end, err)
	_, _ = s.Join(context.Background())
	// Output: report-7 has succeeded <nil>
}
