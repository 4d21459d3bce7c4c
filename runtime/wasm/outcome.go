package wasm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/extismabi"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/jobabi"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// failed returns the outcome of a call that didn't return. Being stopped from
// outside comes first, then running out of fuel; then what the guest reported
// by fail before it trapped or exited, which is often how a language ends a
// program; then the trap itself.
func (i *Instance) failed(ctx context.Context, at *hostcall.Attempt, stopped stopReason, err error) jobhost.Outcome {
	switch {
	case stopped == byDeadline:
		return at.TimedOut()
	case stopped == byContext:
		return at.Stopped(ctx)
	case i.exhausted():
		return at.Failure(jobhost.FailFuel, jobhost.CategoryResource,
			fmt.Sprintf("the guest used up its fuel of %d", i.plugin.limits.Fuel))
	}
	if outcome, ok := i.guest.failed(at); ok {
		return outcome
	}
	return jobhost.Outcome{Kind: jobhost.OutcomeFailed, Failure: i.diagnose(at, err)}
}

// spoilt says why a call that didn't return makes the instance useless.
func (i *Instance) spoilt(err error) runtime.Reason {
	if _, ok := errors.AsType[*badPlace](err); ok {
		return runtime.ReplacedBadResult
	}
	if _, ok := errors.AsType[*jobabi.Trap](err); ok {
		return runtime.ReplacedTrap
	}
	if _, ok := errors.AsType[*extismabi.Trap](err); ok {
		return runtime.ReplacedTrap
	}
	if _, ok := errors.AsType[*wasiabi.Exit](err); ok {
		// A guest that exits leaves nothing that a reset can't undo.
		if i.plugin.source.Isolation == runtime.IsolateInstance {
			return runtime.ReplacedExit
		}
		return ""
	}
	switch trap := trapName(err); {
	case i.exhausted():
		return runtime.ReplacedFuel
	case trap == stackOverflow:
		return runtime.ReplacedStack
	case trap != "":
		return runtime.ReplacedTrap
	}
	return runtime.ReplacedInternal
}

// diagnose says what happened to a guest that didn't return. It reveals nothing
// about the host: wazero's text is parsed, not passed on.
func (i *Instance) diagnose(at *hostcall.Attempt, err error) *jobhost.Failure {
	code, category, message, stack := jobhost.FailTrap, jobhost.CategorySystem, "", ""
	if exit, ok := errors.AsType[*wasiabi.Exit](err); ok {
		code, message = jobhost.FailExit, fmt.Sprintf("the guest exited with code %d", exit.Code)
	} else if trap, ok := errors.AsType[*jobabi.Trap](err); ok {
		message, stack = trap.Error(), guestStack(err)
	} else if trap, ok := errors.AsType[*extismabi.Trap](err); ok {
		category, message, stack = trap.Category, trap.Error(), guestStack(err)
	} else if place, ok := errors.AsType[*badPlace](err); ok {
		code, message = jobhost.FailBadResult, place.message
	} else if trap := trapName(err); trap == stackOverflow {
		code, category, message = jobhost.FailStack, jobhost.CategoryResource, "the guest's calls were nested too deeply: "+trap
		stack = guestStack(err)
	} else if trap != "" {
		message, stack = "the guest trapped: "+trap, guestStack(err)
	} else {
		// A panic of a host call: the text contains the host's stack.
		i.plugin.engine.logger.Error("a host call failed", "worker", i.plugin.source.Worker, "job", at.Job, "error", err)
		code, message, stack = jobhost.FailInternal, "a host call failed; the host's log says more", guestStack(err)
	}
	if i.refused() && (code == jobhost.FailTrap || code == jobhost.FailExit) {
		code, category = jobhost.FailMemory, jobhost.CategoryResource
		message += fmt.Sprintf(" after it was refused more memory than its limit of %s", mebibytes(uint64(i.plugin.limits.MemoryBytes)))
	}
	failure := at.Failure(code, category, message).Failure
	failure.Stack = stack
	return failure
}

func noEntry(p *Plugin, at *hostcall.Attempt) jobhost.Outcome {
	return at.Failure(jobhost.FailNoEntry, jobhost.CategoryValidation,
		fmt.Sprintf("the plugin has no entry %s; %s", text.Line(at.Entry, jobhost.MaxEntryBytes),
			entryNames(p.info.Entries, p.abi.signature())))
}

// stackMark separates wazero's message from the frames of the guest.
const stackMark = "\nwasm stack trace:\n\t"

// stackOverflow is wazero's term for it.
const stackOverflow = "stack overflow"

// trapName returns what trapped, such as "integer divide by zero", or "" when
// err is not a trap. wazero's type for it is internal to it.
func trapName(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		text := err.Error()
		if text == stackOverflow {
			return text
		}
		if text, ok := strings.CutPrefix(text, "wasm error: "); ok {
			text, _, _ = strings.Cut(text, "\n")
			return text
		}
	}
	return ""
}

// maxStack bounds the stack of a failure, in bytes; the guest chooses the names in it.
const maxStack = 8 << 10

// guestStack returns the frames of the guest, innermost first, one per line.
func guestStack(err error) string {
	_, frames, ok := strings.Cut(err.Error(), stackMark)
	if !ok {
		return ""
	}
	// The frames of a host panic are followed by the host's own stack.
	frames, _, _ = strings.Cut(frames, "\n\n")
	var b strings.Builder
	for frame := range strings.SplitSeq(frames, "\n\t") {
		line := text.Line(strings.TrimPrefix(frame, "."), 512)
		if b.Len()+len(line) > maxStack {
			break
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}
