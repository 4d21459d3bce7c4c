package hostcall

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jobhost/jobhost"
)

// Contents is an optional ability of [Services]: it stores payloads and results
// that are too large to be in memory. It closes what it returned itself, after
// the attempt.
type Contents interface {
	// OpenInput returns the payload of an attempt if it is not in Input.
	OpenInput(at *Attempt) (io.Reader, error)
	// Spill returns a writer for the whole output of an attempt, once that turns
	// out to be more than [Limits].SpillBytes.
	Spill(at *Attempt) (io.Writer, error)
}

var errNoContents = errors.New("the host has no payload stores")

// InputSize returns the size of the payload, in bytes.
func (a *Attempt) InputSize() int64 {
	if a.LargeInput > 0 {
		return a.LargeInput
	}
	return int64(len(a.Input))
}

// UnreadInput returns how much of the payload [Attempt.ReadInput] has still to return.
func (a *Attempt) UnreadInput() int64 { return a.InputSize() - a.inputRead }

// ReadInput reads the payload from beginning to end, which is [io.EOF]. It is the way to read a
// payload that is not in Input without holding all of it in memory. After any other error the
// attempt fails, whatever the guest does about it.
func (a *Attempt) ReadInput(p []byte) (int, error) {
	if a.LargeInput == 0 {
		n := copy(p, a.Input[a.inputRead:])
		a.inputRead += int64(n)
		if n == 0 && len(p) > 0 {
			return 0, io.EOF
		}
		return n, nil
	}
	if a.lost != nil {
		return 0, a.lost
	}
	if a.stream == nil {
		if err := a.openInput(); err != nil {
			return 0, err
		}
	}
	n, err := a.stream.Read(p)
	a.inputRead += int64(n)
	if err != nil && err != io.EOF {
		_ = a.lose("read the payload", err)
	}
	return n, err
}

func (a *Attempt) openInput() error {
	contents, ok := a.Services.(Contents)
	if !ok {
		return a.lose("read the payload", errNoContents)
	}
	r, err := contents.OpenInput(a)
	if err != nil {
		return a.lose("read the payload", err)
	}
	a.stream = r
	return nil
}

// LoadInput reads a payload that is not in Input into it, for guests that need
// all of it in their memory, whose size is given. If the attempt can't begin,
// it returns the outcome and true.
func (a *Attempt) LoadInput(memory int64) (jobhost.Outcome, bool) {
	if a.LargeInput == 0 {
		return jobhost.Outcome{}, false
	}
	if a.LargeInput > memory {
		outcome := a.Failure(jobhost.FailInputTooLarge, jobhost.CategoryResource, fmt.Sprintf(
			"the payload of %d bytes does not fit into the worker's memory of %d; raise its memory, or make it a WASI command, which reads a stream",
			a.LargeInput, memory))
		outcome.Failure.Retryable = false
		return outcome, true
	}
	input := make([]byte, a.LargeInput)
	_, err := io.ReadFull(reader{a}, input)
	if err == nil {
		_, err = io.Copy(io.Discard, reader{a}) // only the end confirms that it is complete
	}
	if err != nil {
		_ = a.lose("read the payload", err)
		return a.lostOutcome(), true
	}
	a.Input, a.LargeInput, a.inputRead = input, 0, 0
	return jobhost.Outcome{}, false
}

// reader makes an attempt's payload an io.Reader.
type reader struct{ at *Attempt }

// Read implements [io.Reader].
func (r reader) Read(p []byte) (int, error) { return r.at.ReadInput(p) }

// spills reports whether the output is stored elsewhere once it gets n bytes
// longer, and starts that if necessary.
func (a *Attempt) spills(n int) bool {
	if a.spill != nil || a.lost != nil {
		return true
	}
	if a.Limits.SpillBytes == 0 || len(a.output)+n <= a.Limits.SpillBytes {
		return false
	}
	contents, ok := a.Services.(Contents)
	if !ok {
		return false
	}
	w, err := contents.Spill(a)
	if err != nil {
		_ = a.lose("store the result", err)
		return true
	}
	a.spill = w
	a.spillOut(a.output)
	a.output = a.output[:0]
	return true
}

// spillOut writes output to spill.
func (a *Attempt) spillOut(p []byte) {
	if a.lost != nil || len(p) == 0 {
		return
	}
	if _, err := a.spill.Write(p); err != nil {
		_ = a.lose("store the result", err)
	}
	a.spilled += len(p)
}

// Lost fails an attempt that succeeded, but whose result could not be stored.
func (a *Attempt) Lost(err error) jobhost.Outcome {
	_ = a.lose("store the result", err)
	return a.lostOutcome()
}

// HasLost reports whether the payload or the result was lost, because of a
// store or because the attempt was stopped.
func (a *Attempt) HasLost() bool { return a.lost != nil }

// Loss returns why the payload or the result was lost; nil = it was not.
func (a *Attempt) Loss() error { return a.lost }

// lose records the first error of the attempt's contents.
func (a *Attempt) lose(what string, err error) error {
	if a.lost == nil {
		a.lost, a.losing = err, what
	}
	return a.lost
}

// lostOutcome returns the outcome of an attempt whose payload or result was
// lost. It is retryable if a store doesn't respond, and not if the content is
// gone or damaged. The cause is for operators.
func (a *Attempt) lostOutcome() jobhost.Outcome {
	if !a.Deadline.IsZero() && !time.Now().Before(a.Deadline) {
		return a.TimedOut()
	}
	message, category := a.losing+": "+a.lost.Error(), jobhost.CategorySystem
	if e, ok := errors.AsType[*jobhost.Error](a.lost); ok {
		message = a.losing + ": " + e.Message
	}
	retryable := false
	if code := jobhost.CodeOf(a.lost); code == jobhost.CodeUnavailable {
		category, retryable = jobhost.CategoryNetwork, true
	}
	outcome := a.Failure(jobhost.FailPayload, category, message)
	outcome.Failure.Retryable = retryable
	return outcome
}
