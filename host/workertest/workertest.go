// Package workertest runs the test cases of a worker: each is an input in a file
// and what must come of it, and what the worker finds of the world meanwhile.
//
//	cases/NAME/input.txt  ─► sandbox ─► output, failure, changes ─► compared with
//	cases/NAME/case.toml  ─► keys, responses, states, time           NAME/output.txt
//
// A worker runs in the sandbox that a host would give it. All that leaves the
// sandbox ends here, in the [box] of the case: nothing is sent anywhere, keys live
// as long as the case, and waiting for a timer or a slow response takes no time.
// What sandboxes have by WASI, clocks, sleep and mounts, is real.
package workertest

import (
	"time"

	"github.com/jobhost/jobhost"
)

// Bounds of cases.
const (
	MaxCases     = 10_000
	MaxFileBytes = 64 << 20 // of an input, an output, or the body of a response
)

// Case is one test.
type Case struct {
	// Name is its path below the folder of the suite, with slashes.
	Name string
	// dir is where its files are, and stem what their names begin with: "input" and
	// "output" have none.
	dir, stem string

	// Skip says why it isn't run; empty = it is.
	Skip string
	// Input is the payload.
	Input []byte
	// Output is the file of the output that is wanted.
	Output File

	Entry       string // empty = the worker's
	Timeout     time.Duration
	Job, Trace  string
	Task, Tasks int
	Attempt     int
	Priority    jobhost.Priority
	LogLevel    string // the lowest that is kept
	Config      map[string]string
	Secrets     map[string]string
	Labels      map[string]string
	KV          map[string]string // before
	Messages    []string          // what a fiber is sent; nil = it is no fiber
	States      []GivenState
	Requests    []*Mock
	Children    []GivenEnd
	Expect      Expect
}

// GivenState is a state that is there before the attempt.
type GivenState struct {
	jobhost.TaskState
	Worker string // of another job
}

// GivenEnd is how a job ends that the worker submits at once and waits for.
type GivenEnd struct {
	Worker string
	Result string
	Fail   *jobhost.Failure // nil = it succeeds
}

// Result is what became of a case.
type Result struct {
	Case *Case
	// Differences are what is not as it should be; none = the case passed.
	Differences []Difference
	// Notes say what may explain them.
	Notes []string
	// Log is the worker's.
	Log  string
	Took time.Duration
	// Updated is the file that was written, by [Runner.Update]; empty = none.
	Updated string
}

// OK reports whether the case passed.
func (r *Result) OK() bool { return len(r.Differences) == 0 }

// Difference is something that is not as it should be.
type Difference struct {
	// What differs: "output", "outcome", "kv", "log 2 message".
	What string
	// Want and Got are for people.
	Want, Got string
	// Diff shows both, line by line, where they have several; empty = it is for
	// Want and Got to say.
	Diff string
}
