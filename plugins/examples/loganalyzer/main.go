// Command loganalyzer is a worker that reads the access log of a web server,
// in the common or the combined format, and returns its statistics.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func init() {
	// encoding/json analyzes a type when it first encounters it. Here that happens before the
	// sandbox's memory is saved as the initial state of all jobs.
	_ = encode(io.Discard, newStats().report())
	jobhost.Handle(analyze)
}

func main() {}

var errNoLog = errors.New("this is no access log: not one line is in the common or combined format")

// progressEvery is how much is read between two reports of progress, in bytes.
const progressEvery = 64 << 10

func analyze(job *jobhost.Job) ([]byte, error) {
	s := newStats()
	log := job.Input()
	total, reported := len(log), 0
	for len(log) > 0 {
		var line []byte
		line, log, _ = bytes.Cut(log, []byte{'\n'})
		s.add(bytes.TrimSuffix(line, []byte{'\r'}))
		if done := total - len(log); done-reported >= progressEvery {
			reported = done
			job.Progress(int64(done), int64(total))
		}
	}
	job.Progress(int64(total), int64(total))
	if s.requests == 0 && s.malformed > 0 {
		return nil, jobhost.Permanent(&jobhost.Failure{Err: errNoLog, Code: "no_access_log", Category: jobhost.Validation})
	}
	// The statistics are complete without the metrics, which jobhost exec doesn't keep.
	if err := s.tell(job); err != nil && !errors.Is(err, jobhost.ErrDenied) {
		job.Log(jobhost.LevelWarn, "some metrics are missing: "+err.Error())
	}
	return nil, encode(job, s.report())
}

// tell adds the counts to the worker's metrics, once per job, and returns the
// first error.
func (s *stats) tell(job *jobhost.Job) error {
	errs := []error{
		job.Counter("lines", "kind", "request").Add(float64(s.requests)),
		job.Counter("lines", "kind", "malformed").Add(float64(s.malformed)),
		job.Histogram("log_bytes").Observe(float64(len(job.Input()))),
	}
	for class, n := range s.classes {
		if n > 0 {
			errs = append(errs, job.Counter("requests", "class", className(class)).Add(float64(n)))
		}
	}
	return cmp.Or(errs...)
}

// encode formats a report for people.
func encode(w io.Writer, r report) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
