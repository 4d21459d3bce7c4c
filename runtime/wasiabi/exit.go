package wasiabi

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func processFunctions() []Function {
	return []Function{
		{
			Name: "proc_exit", Params: []api.ValueType{api.ValueTypeI32}, Names: []string{"code"},
			call: func(ctx context.Context, _ api.Module, stack []uint64) { procExit(system(ctx), uint32(stack[0])) },
		},
		define("proc_raise", "signal", procRaise),
		define("sched_yield", "", schedYield),
	}
}

// Exit is the error that ends a call into a guest after proc_exit. The module
// stays open. The error is valid until the guest is entered again.
type Exit struct{ Code uint32 }

// Error returns the code as text.
func (e *Exit) Error() string { return fmt.Sprintf("the guest exited with code %d", e.Code) }

// proc_exit(code) ends the call into the guest.
func procExit(s *System, code uint32) {
	s.exit.Code = code
	panic(&s.exit) //nolint:forbidigo // how a host function leaves the guest: wazero recovers it
}

// proc_raise(signal): there are no signals.
func procRaise(*System, memory, args) Errno { return ENOSYS }

// sched_yield() has nothing to yield to.
func schedYield(*System, memory, args) Errno { return OK }

// retryExit is the exit code of a command that wants to be retried: EX_TEMPFAIL
// of sysexits.h.
const retryExit = 75

// Outcome returns the outcome of an attempt whose command exited with a code;
// it must be called before [System.End]. What the guest reported by other means
// takes precedence, and a result that was refused as too large is a failure
// whatever the code. Code 0 is success with what was written to the output, 75
// a retryable failure, anything else a permanent one; its message is the last
// line on standard error.
func (s *System) Outcome(code uint32) jobhost.Outcome {
	s.err.flush(s.at)
	if code == 0 || s.refused {
		return s.at.Outcome(nil)
	}
	if outcome, said := s.at.Failed(); said {
		return outcome
	}
	message := fmt.Sprintf("exit code %d", code)
	if len(s.err.last) > 0 {
		message += ": " + text.Line(string(s.err.last), hostcall.MaxMessageBytes)
	}
	outcome := s.at.Failure(jobhost.FailExit, jobhost.CategoryUnknown, message)
	outcome.Failure.Retryable = code == retryExit
	return outcome
}
