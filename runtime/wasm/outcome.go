package wasm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/jobabi"
)

// failed makes an outcome of a call that didn't return. Being stopped from
// outside comes first; then what the guest said by fail before it trapped or
// exited, which is often how a language ends a program; then the trap itself.
func (i *Instance) failed(ctx context.Context, at *hostcall.Attempt, stopped stopReason, err error) jobhost.Outcome {
	if _, exit := errors.AsType[*sys.ExitError](err); exit {
		switch stopped {
		case byDeadline:
			return at.TimedOut()
		case byContext:
			return at.Stopped(ctx)
		}
	}
	if outcome, ok := at.Failed(); ok {
		return outcome
	}
	return jobhost.Outcome{Kind: jobhost.OutcomeFailed, Failure: i.diagnose(at, err)}
}

// diagnose says what happened to a guest that didn't return. Nothing of the
// host shows in it: wazero's text is taken apart, not passed on.
func (i *Instance) diagnose(at *hostcall.Attempt, err error) *jobhost.Failure {
	code, message, stack := jobhost.FailTrap, "", ""
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		code, message = jobhost.FailExit, fmt.Sprintf("the guest exited with code %d", exit.ExitCode())
	} else if trap, ok := errors.AsType[*jobabi.Trap](err); ok {
		message, stack = trap.Error(), guestStack(err)
	} else if place, ok := errors.AsType[*badPlace](err); ok {
		code, message = jobhost.FailBadResult, place.message
	} else if trap := trapName(err); trap != "" {
		message, stack = "the guest trapped: "+trap, guestStack(err)
	} else {
		// A panic of a host call: the text has the host's stack in it.
		i.plugin.engine.logger.Error("a host call failed", "worker", i.plugin.worker, "job", at.Job, "error", err)
		code, message, stack = jobhost.FailInternal, "a host call failed; the host's log says more", guestStack(err)
	}
	category := jobhost.CategorySystem
	if i.memory.refused {
		category = jobhost.CategoryResource
		message += fmt.Sprintf(" after it was refused more memory than its limit of %s", mebibytes(i.memory.limit))
	}
	failure := at.Failure(code, category, message).Failure
	failure.Stack = stack
	return failure
}

func noEntry(p *Plugin, at *hostcall.Attempt) jobhost.Outcome {
	return at.Failure(jobhost.FailNoEntry, jobhost.CategoryValidation,
		fmt.Sprintf("the plugin has no entry %s; %s", hostcall.Escape([]byte(at.Entry), jobhost.MaxEntryBytes), entryNames(p.info.Entries)))
}

func badResult(at *hostcall.Attempt, err error) jobhost.Outcome {
	return at.Failure(jobhost.FailBadResult, jobhost.CategorySystem, err.Error())
}

// stackMark is between wazero's message and the frames of the guest.
const stackMark = "\nwasm stack trace:\n\t"

// trapName returns what trapped, such as "integer divide by zero", or "" when
// err is not a trap. wazero's type for it is internal to it.
func trapName(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		text := err.Error()
		if text == "stack overflow" {
			return text
		}
		if text, ok := strings.CutPrefix(text, "wasm error: "); ok {
			text, _, _ = strings.Cut(text, "\n")
			return text
		}
	}
	return ""
}

// maxStack bounds the stack of a failure, in bytes; names in it are the guest's choice.
const maxStack = 8 << 10

// guestStack returns the frames of the guest, innermost first, one per line.
func guestStack(err error) string {
	_, text, ok := strings.Cut(err.Error(), stackMark)
	if !ok {
		return ""
	}
	// Behind the frames of a panic of the host comes the host's own stack.
	text, _, _ = strings.Cut(text, "\n\n")
	frames := strings.Split(text, "\n\t")
	if last := len(frames) - 1; strings.HasPrefix(frames[last], ".$") {
		frames = frames[:last] // the gate, which has no names
	}
	var b strings.Builder
	for _, frame := range frames {
		line := hostcall.Escape([]byte(strings.TrimPrefix(frame, ".")), 512)
		if b.Len()+len(line) > maxStack {
			break
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}
