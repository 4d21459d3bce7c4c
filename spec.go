package jobhost

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a [Spec] that no configuration changes.
const (
	MaxTasks               = 10_000
	MaxAttempts            = 1_000
	MaxLabels              = 16
	MaxLabelBytes          = 256
	MaxEntryBytes          = 128
	MaxTimeout             = 24 * time.Hour
	MaxDelay               = 10 * 365 * 24 * time.Hour
	MaxContentType         = 128
	MaxConcurrencyKeyBytes = 256

	MaxChildren = 1_000 // jobs that one job may submit
	MaxDepth    = 32    // of a job below the one at the root of its tree
)

// Spec describes a job to submit. Only Worker is required; each zero value
// means the worker's default, which the manifest sets.
type Spec struct {
	// ID names the job; empty = a new UUID of version 7. Submitting the same id
	// with the same content again returns the existing job; with other content
	// it is a conflict.
	ID string
	// Worker is the name of a worker of the manifest.
	Worker string
	// Payload is passed to the worker unchanged.
	Payload []byte
	// PayloadRef names an uploaded payload; not together with Payload. It can be
	// used for one job only.
	PayloadRef string
	// ContentType describes the payload; the host doesn't interpret it.
	ContentType string
	// Entry is the export to call; empty = the worker's.
	Entry string
	// Priority among the tasks of the same worker; zero = Normal.
	Priority Priority
	// RunAt is when the job may start; zero = at once.
	RunAt time.Time
	// Delay is how long after its submission the job may start; not together with RunAt.
	Delay time.Duration
	// Tasks is the number of partitions, 1 to [MaxTasks]; 0 = 1.
	Tasks int
	// MaxAttempts includes the first attempt, 1 to [MaxAttempts]; 0 = the worker's.
	MaxAttempts int
	// Timeout bounds one attempt, up to [MaxTimeout]; 0 = the worker's.
	Timeout time.Duration
	// Retention is how long the job is kept after its end, however it ends, up
	// to [MaxRetention]; 0 = as the worker says.
	Retention time.Duration
	// Labels are for people and filters: at most [MaxLabels], key and value
	// up to [MaxLabelBytes] bytes.
	Labels map[string]string
	// ConcurrencyKey, if not empty, groups the tasks of this job with those of others with
	// the same key: groups take turns, and each counts as a whole for the worker's
	// concurrency_per_key; up to [MaxConcurrencyKeyBytes] bytes.
	ConcurrencyKey string
	// Deadline is how long after its submission the job is given up: tasks still waiting then
	// die. Running attempts continue. Up to [MaxDelay]; 0 = never.
	Deadline time.Duration
	// UniqueKey, if not empty, makes jobs of the worker with the same key one:
	// submits within UniqueFor of the first return that job, whatever else they
	// specify. UniqueFor 0 = for as long as that job is kept.
	UniqueKey string
	UniqueFor time.Duration
	// Callback says what to do when the job has ended.
	Callback Callback
}

// Check reports everything that is wrong with the spec in itself, as errors
// with code [CodeInvalid] joined into one, or [CodeDenied] for one of the
// host's own workers. What depends on the host (an unknown worker, a payload
// over the limit, a full queue, a URL that is not allowed) is not checked.
func (s *Spec) Check() error {
	errs := append(make([]error, 0, 22), CheckWorker(s.Worker), CheckNotReserved(s.Worker)) // with this capacity it stays on the stack
	if s.ID != "" {
		errs = append(errs, CheckID(s.ID), checkStepID(s.ID), checkTickID(s.ID))
	}
	errs = append(errs,
		inRange("tasks", s.Tasks, 0, MaxTasks),
		inRange("max_attempts", s.MaxAttempts, 0, MaxAttempts),
		inRange("timeout", Duration(s.Timeout), 0, Duration(MaxTimeout)),
		inRange("retention", Duration(s.Retention), 0, Duration(MaxRetention)),
		inRange("delay", Duration(s.Delay), 0, Duration(MaxDelay)),
		s.checkRunAt(),
		checkText("entry", s.Entry, MaxEntryBytes),
		checkText("content_type", s.ContentType, MaxContentType),
		checkLabels(s.Labels),
		checkText("concurrency_key", s.ConcurrencyKey, MaxConcurrencyKeyBytes),
		checkText("payload_ref", s.PayloadRef, MaxRefBytes),
		checkText("unique_key", s.UniqueKey, MaxConcurrencyKeyBytes),
		inRange("unique_for", Duration(s.UniqueFor), 0, Duration(MaxDelay)),
		inRange("deadline", Duration(s.Deadline), 0, Duration(MaxDelay)),
		s.checkTogether(),
	)
	if s.Priority > Background {
		errs = append(errs, invalid("priority", "%d is not a priority", s.Priority))
	}
	return errors.Join(errs...)
}

// checkTogether checks options against each other.
func (s *Spec) checkTogether() error {
	var errs []error
	if s.PayloadRef != "" && len(s.Payload) > 0 {
		errs = append(errs, invalid("payload_ref", "payload and payload_ref are both set"))
	}
	if s.UniqueFor != 0 && s.UniqueKey == "" {
		errs = append(errs, invalid("unique_for", "unique_for is set, but there is no unique_key"))
	}
	if s.Deadline != 0 && s.Deadline <= s.Delay {
		errs = append(errs, invalid("deadline", "the deadline %v comes before the delay %v is over", Duration(s.Deadline), Duration(s.Delay)))
	}
	return errors.Join(append(errs, s.checkCallback())...)
}

func (s *Spec) checkCallback() error {
	switch {
	case s.Callback.Worker != "" && s.Callback.URL != "":
		return invalid("callback", "the callback names a worker and a URL: it can be one of them")
	case s.Callback.URL != "":
		return CheckURL(s.Callback.URL)
	case s.Callback.Worker != "":
		if err := errors.Join(CheckWorker(s.Callback.Worker), CheckNotReserved(s.Callback.Worker)); err != nil {
			return fmt.Errorf("callback: %w", err)
		}
	}
	return nil
}

// CheckNotReserved returns an error with code [CodeDenied] for the host's own
// workers, which accept no jobs or keys from others.
func CheckNotReserved(worker string) error {
	if !strings.HasPrefix(worker, ReservedWorkers) {
		return nil
	}
	return &Error{
		Code: CodeDenied, Field: "worker", Message: fmt.Sprintf("worker %s is the host's own", clip(worker)),
		Hint: "name a worker of the manifest",
	}
}

// checkStepID rejects ids that are reserved for the jobs of workflows.
func checkStepID(id string) error {
	if !strings.HasPrefix(id, WorkflowIDPrefix) {
		return nil
	}
	return &Error{
		Code: CodeInvalid, Field: "id", Message: fmt.Sprintf("%s is the id of a workflow's step: those begin with %s", clip(id), WorkflowIDPrefix),
		Hint: "choose another id",
	}
}

// TickLayout is the format of a tick in the id of its job, after the schedule's
// name and a dot; see [time.Time.Format].
const TickLayout = "20060102T150405Z"

// checkTickID rejects ids that are reserved for the jobs of ticks; otherwise a
// submit could take a tick's id before it comes.
func checkTickID(id string) error {
	dot := strings.LastIndexByte(id, '.')
	if dot < 0 || len(id)-dot-1 != len(TickLayout) {
		return nil
	}
	if _, err := time.Parse(TickLayout, id[dot+1:]); err != nil {
		return nil //nolint:nilerr // it is not a time
	}
	return &Error{
		Code: CodeInvalid, Field: "id", Message: fmt.Sprintf("%s is the id of a schedule's tick: those end with a dot and a time", clip(id)),
		Hint: "choose another id, such as one with a dash before the time",
	}
}

func (s *Spec) checkRunAt() error {
	switch {
	case s.RunAt.IsZero():
		return nil
	case s.Delay != 0:
		return invalid("run_at", "run_at and delay are both set")
	case s.RunAt.Year() < 1970 || s.RunAt.After(time.Now().Add(MaxDelay)):
		return invalid("run_at", "run_at %s is out of range", s.RunAt.UTC().Format(time.RFC3339))
	}
	return nil
}

func checkLabels(labels map[string]string) error {
	if len(labels) > MaxLabels {
		return invalid("labels", "%d labels are more than %d", len(labels), MaxLabels)
	}
	for k, v := range labels {
		if k == "" {
			return invalid("labels", "a label has no name")
		}
		if err := errors.Join(checkText("labels", k, MaxLabelBytes), checkText("labels", v, MaxLabelBytes)); err != nil {
			return err
		}
	}
	return nil
}

func inRange[N int | Duration](field string, n, low, high N) error {
	if n >= low && n <= high {
		return nil
	}
	return invalid(field, "%s %v is not between %v and %v", field, n, low, high)
}

// checkText rejects control characters and invalid UTF-8 in what will be shown to people.
func checkText(field, s string, most int) error {
	if len(s) > most {
		return invalid(field, "%s of %d bytes is longer than %d", field, len(s), most)
	}
	if !utf8.ValidString(s) {
		return invalid(field, "%s is not valid UTF-8", field)
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return invalid(field, "%s %s has a control character", field, clip(s))
		}
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return &Error{Code: CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}
