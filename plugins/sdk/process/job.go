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

// Job is the attempt under way and all that it may ask of the host. It is valid until its handler
// returns, and may be used by many goroutines, which wait for the host independently of each other; what a
// method returns, such as a request that is under way, belongs to one.
type Job struct {
	*jobhost.Job

	size  int64
	read  sync.Once
	input []byte
	open  func() io.Reader
	told  <-chan struct{} // nil in tests: nobody cancels
}

func newJob(run *link.Run, r *remote) *Job {
	t := run.Task
	j := &Job{Job: jobhost.RemoteJob(r, nil), size: t.GetInputBytes(), input: t.GetInput(), told: run.Cancelled()}
	if int64(len(j.input)) >= j.size {
		j.size = int64(len(j.input))
		j.open = func() io.Reader { return bytes.NewReader(j.input) }
	} else {
		j.open = func() io.Reader { return &payload{remote: r} }
	}
	return j
}

// Input returns the payload. One of more than 1 MiB is fetched from the host when it is first asked for, and
// then is in memory: [Job.Open] is for those that can be worked on piece by piece.
func (j *Job) Input() []byte {
	j.read.Do(func() {
		if int64(len(j.input)) < j.size {
			// An error fails the attempt, whatever becomes of it here.
			j.input, _ = io.ReadAll(j.open())
		}
	})
	return j.input
}

// Open returns the payload from its beginning, for large ones. Use it instead of [Job.Input], once.
func (j *Job) Open() io.Reader { return j.open() }

// InputSize returns how many bytes the payload has.
func (j *Job) InputSize() int64 { return j.size }

// Cancelled is closed when the job is cancelled: end soon. So ends the context of the handler.
func (j *Job) Cancelled() <-chan struct{} { return j.told }

// Rand returns a generator of random numbers of its own. A process keeps its memory, and so math/rand
// is as good.
func (j *Job) Rand() *rand.Rand {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // which never fails
	return rand.New(rand.NewChaCha8(seed))
}

// Run runs a handler in memory, for tests: [jobhost.Run] of the SDK for Wasm has what can be
// given to it and what it tells.
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
