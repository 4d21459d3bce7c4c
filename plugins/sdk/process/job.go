package process

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"io"
	"math/rand/v2"
	"sync"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/process/link"
)

// Job is the current attempt and its access to the host. It is valid until its handler returns, and is
// safe for concurrent use: goroutines wait for the host independently of each other. What a method
// returns, such as a request in flight, is for one goroutine.
type Job struct {
	*jobhost.Job

	size      int64
	read      sync.Once
	input     []byte
	open      func() io.Reader
	cancelled <-chan struct{} // nil in tests: never cancelled
}

func newJob(run *link.Run, r *remote) *Job {
	t := run.Task
	j := &Job{Job: jobhost.RemoteJob(r, nil), size: t.GetInputBytes(), input: t.GetInput(), cancelled: run.Cancelled()}
	if int64(len(j.input)) >= j.size {
		j.size = int64(len(j.input))
		j.open = func() io.Reader { return bytes.NewReader(j.input) }
	} else {
		j.open = func() io.Reader { return &payload{remote: r} }
	}
	return j
}

// Input returns the payload. One of more than 1 MiB is fetched from the host on first use, and then held in
// memory: use [Job.Open] to process it piece by piece.
func (j *Job) Input() []byte {
	j.read.Do(func() {
		if int64(len(j.input)) < j.size {
			// An error fails the attempt, whatever is done about it here.
			j.input, _ = io.ReadAll(j.open())
		}
	})
	return j.input
}

// Open returns the payload from its beginning, for large ones. Use it instead of [Job.Input], once.
func (j *Job) Open() io.Reader { return j.open() }

// InputSize returns the size of the payload in bytes.
func (j *Job) InputSize() int64 { return j.size }

// Cancelled is closed when the job is cancelled and should end soon. So is the context of the handler.
func (j *Job) Cancelled() <-chan struct{} { return j.cancelled }

// Rand returns a random number generator of its own. A process keeps its memory, so math/rand is as
// good.
func (j *Job) Rand() *rand.Rand {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // never fails
	return rand.New(rand.NewChaCha8(seed))
}

// Run runs a handler in memory, for tests: see [jobhost.Run] of the SDK for Wasm for its
// input and its result.
//
//	got := process.Run(t.Context(), hello, jobhost.Attempt{Input: []byte("Ada")})
func Run(ctx context.Context, h Handler, at jobhost.Attempt) *jobhost.Result {
	return jobhost.Run(func(job *jobhost.Job) ([]byte, error) {
		input := job.Input()
		return h(ctx, &Job{
			Job: job, input: input, size: int64(len(input)),
			open: func() io.Reader { return bytes.NewReader(input) },
		})
	}, at)
}
