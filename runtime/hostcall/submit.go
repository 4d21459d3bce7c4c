package hostcall

import (
	"fmt"
	"slices"

	"github.com/jobhost/jobhost"
)

// Jobs is an optional ability of [Services]: to submit further jobs.
type Jobs interface {
	// SubmitJob submits a job, at once or when the attempt succeeds, and
	// returns its id. spec has passed [jobhost.Spec.Check], and its payload is
	// valid during the call. Errors are of type [*jobhost.Error] and safe to
	// show to the guest.
	SubmitJob(at *Attempt, spec *jobhost.Spec, when SubmitTime) (id string, err error)
}

// SubmitTime is when a job is submitted; the numbers are part of the ABI.
type SubmitTime int32

// The times.
const (
	SubmitWithSuccess SubmitTime = 0 // when the attempt has succeeded, else never
	SubmitNow         SubmitTime = 1 // at once, whatever happens to the attempt
)

// MaxSubmitBytes bounds the text that describes a job, its payload included.
const MaxSubmitBytes = 64<<20 + maxHeadBytes

// Submit submits the job described by text: see [ParseSpec]. It returns a number,
// from 1, by which [Attempt.Info] knows the id of the job. Faults are logged for
// the author of the guest. The result is [ErrDenied] for a worker that this one
// may not submit to, whether it exists or not, [ErrInvalid] for an invalid text
// or time, [ErrNotFound] when the worker isn't loaded, [ErrConflict] when the id
// is taken, and [ErrLimit] when there is no room in the worker's queue, or the
// job has too many children or too many ancestors.
func (a *Attempt) Submit(text []byte, when SubmitTime) (int32, Errno) {
	if far := a.far(); far != nil {
		return far.Submit(text, when)
	}
	jobs, _ := a.Services.(Jobs)
	id, err := "", error(nil)
	if jobs == nil {
		err = &jobhost.Error{Code: jobhost.CodeDenied, Message: "there is no queue to submit to"}
	} else {
		id, err = a.submit(jobs, text, when)
	}
	if err != nil {
		a.Log(LevelWarn, []byte("submit: "+err.Error()))
		return 0, ErrnoOf(err)
	}
	return a.child(id, when), OK
}

// child gives a job of the attempt its number.
func (a *Attempt) child(id string, when SubmitTime) int32 {
	a.submitted = append(a.submitted, child{id, when})
	return int32(len(a.submitted))
}

// tooMuch is the error for a limit of the attempt; format has one %s.
func (a *Attempt) tooMuch(format, most string) error {
	return &jobhost.Error{Code: jobhost.CodeExhausted, Message: fmt.Sprintf(format, most)}
}

func (a *Attempt) submit(jobs Jobs, text []byte, when SubmitTime) (string, error) {
	if when != SubmitWithSuccess && when != SubmitNow {
		return "", &jobhost.Error{Code: jobhost.CodeInvalid, Message: "a job is submitted with success, 0, or now, 1"}
	}
	spec, err := ParseSpec(text)
	if err != nil {
		return "", err
	}
	if !slices.Contains(a.MaySubmit, spec.Worker) {
		return "", &jobhost.Error{
			Code: jobhost.CodeDenied, Field: "worker",
			Message: "this worker may not submit jobs to " + spec.Worker,
			Hint:    "add it to the worker's submit in the manifest",
		}
	}
	if err := spec.Check(); err != nil {
		return "", err
	}
	return jobs.SubmitJob(a, &spec, when)
}

// ErrnoOf returns the errno for an error.
func ErrnoOf(err error) Errno {
	switch jobhost.CodeOf(err) {
	case "":
		return OK
	case jobhost.CodeNotFound:
		return ErrNotFound
	case jobhost.CodeDenied:
		return ErrDenied
	case jobhost.CodeInvalid:
		return ErrInvalid
	case jobhost.CodeConflict:
		return ErrConflict
	case jobhost.CodeTooLarge, jobhost.CodeExhausted:
		return ErrLimit
	default:
		return ErrIO
	}
}
