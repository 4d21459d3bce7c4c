package jobhost

import (
	"sort"
	"strconv"
	"strings"
	"time"
)

// Spec describes a job to submit. Only Worker is required, which the manifest must list in the
// submit setting of this worker; zero values mean that worker's defaults.
type Spec struct {
	Worker  string
	Payload []byte
	// ID names the job; empty = a name that is the same in each attempt of this
	// task, for the first, the second, … job that it submits.
	ID          string
	ContentType string
	Entry       string
	Priority    string // critical, high, normal, low or background
	Delay       time.Duration
	RunAt       time.Time
	Tasks       int
	MaxAttempts int
	Timeout     time.Duration
	Labels      map[string]string
}

// Submit submits a job when this one has succeeded, exactly once, and returns
// its id. If this one fails, the job is never submitted.
//
// Errors: [ErrDenied] for a worker that this one may not submit to,
// [ErrNotFound] for one that isn't loaded, [ErrInvalid] for an invalid spec,
// [ErrConflict] for an id that is taken, [ErrLimit] when the worker's queue is
// full or the job has submitted too many. The job's log says more.
func (j *Job) Submit(spec Spec) (id string, err error) {
	_, id, err = j.submit(&spec, 0)
	return id, err
}

// SubmitNow submits a job at once, whatever happens to this one. When it
// returns, the job is durable. If this one is retried, and submits the same
// jobs in the same order, they already exist and are not submitted again. Use
// [Job.Start] to wait for the job.
func (j *Job) SubmitNow(spec Spec) (id string, err error) {
	_, id, err = j.submit(&spec, 1)
	return id, err
}

// submit returns the job's number among those of this attempt, and its id.
func (j *Job) submit(spec *Spec, when int32) (number int32, id string, err error) {
	text, ok := spec.text()
	if !ok {
		return 0, "", failed("submit", ErrInvalid)
	}
	if number = j.host.Submit(text, when); number < 0 {
		return 0, "", failed("submit to "+spec.Worker, Errno(number))
	}
	id, e := j.host.Info("child." + strconv.Itoa(int(number)))
	return number, id, failed("submit", e)
}

// text formats the spec as the host reads it; ok is false if an option can't be
// written, since it contains a line break.
func (s *Spec) text() (text []byte, ok bool) {
	ok = true
	option := func(name, value string) {
		if value != "" {
			ok = ok && !strings.ContainsAny(name+value, "\n\r") && !strings.Contains(name, ":")
			text = append(append(append(append(text, name...), ": "...), value...), '\n')
		}
	}
	number := func(name string, n int) {
		if n != 0 {
			option(name, strconv.Itoa(n))
		}
	}
	option("worker", s.Worker)
	option("id", s.ID)
	option("content_type", s.ContentType)
	option("entry", s.Entry)
	option("priority", s.Priority)
	if s.Delay != 0 {
		option("delay", s.Delay.String())
	}
	if !s.RunAt.IsZero() {
		option("run_at", s.RunAt.Format(time.RFC3339Nano))
	}
	number("tasks", s.Tasks)
	number("max_attempts", s.MaxAttempts)
	if s.Timeout != 0 {
		option("timeout", s.Timeout.String())
	}
	names := make([]string, 0, len(s.Labels))
	for name := range s.Labels {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		option("label."+name, s.Labels[name]+" ") // a space keeps an empty value
	}
	return append(append(text, '\n'), s.Payload...), ok
}
