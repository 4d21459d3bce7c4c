// Package workertest runs the test cases of a worker: each has an input in a file,
// the expected results, and what the worker finds in its environment.
//
//	cases/NAME/input.txt  ─► sandbox ─► output, failure, changes ─► compared with
//	cases/NAME/case.toml  ─► keys, responses, states, time           NAME/output.txt
//
// A worker runs in the same sandbox as on a host. Everything that leaves the
// sandbox ends in the [box] of the case: nothing is sent anywhere, keys live as
// long as the case, and waiting for a timer or a slow response takes no time. What
// sandboxes get from WASI (clocks, sleep and mounts) is real.
package workertest

import (
	"time"

	"github.com/jobhost/jobhost"
)

// Limits of cases.
const (
	MaxCases     = 10_000
	MaxFileBytes = 64 << 20 // of an input, an output, or the body of a response
)

// Case is one test.
type Case struct {
	// Name is its path below the folder of the suite, with slashes.
	Name string
	// dir has its files, and stem is the prefix of their names: "input" and
	// "output" have none.
	dir, stem string

	// Skip says why it isn't run; empty = it runs.
	Skip string
	// Input is the payload.
	Input []byte
	// Output is the file of the expected output.
	Output File

	Entry       string // empty = the worker's
	Timeout     time.Duration
	Job, Trace  string
	Task, Tasks int
	Attempt     int
	Priority    jobhost.Priority
	LogLevel    string // the lowest level that is kept
	Config      map[string]string
	Secrets     map[string]string
	Labels      map[string]string
	KV          map[string]string // before
	Messages    []string          // messages sent to a fiber; nil = it isn't a fiber
	States      []GivenState
	Requests    []*Mock
	Children    []GivenEnd
	Expect      Expect
}

// GivenState is a state that exists before the attempt.
type GivenState struct {
	jobhost.TaskState
	Worker string // of another job
}

// GivenEnd is the end of a job that the worker submits immediately and waits for.
type GivenEnd struct {
	Worker string
	Result string
	Fail   *jobhost.Failure // nil = it succeeds
}

// Result is the result of a case.
type Result struct {
	Case *Case
	// Differences are deviations from what is expected; none = the case passed.
	Differences []Difference
	// Notes may explain them.
	Notes []string
	// Log is the worker's.
	Log  string
	Took time.Duration
	// Updated is the file that was written, by [Runner.Update]; empty = none.
	Updated string
}

// OK reports whether the case passed.
func (r *Result) OK() bool { return len(r.Differences) == 0 }

// Difference is a deviation from what is expected.
type Difference struct {
	// What differs: "output", "outcome", "kv", "log 2 message".
	What string
	// Want and Got are for people.
	Want, Got string
	// Diff shows both, line by line, if they have several; empty = Want and Got
	// suffice.
	Diff string
}
