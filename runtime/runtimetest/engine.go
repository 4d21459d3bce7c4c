package runtimetest

import (
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Opener loads a guest with the other settings of a source; the plugin is closed at the end of t.
type Opener func(t *testing.T, src runtime.Source) runtime.Plugin

// RunEngine runs the suite with each Wasm ABI that an engine must support. open returns an Opener for a guest.
func RunEngine(t *testing.T, open func(guest []byte) Opener) {
	t.Run("native", func(t *testing.T) {
		t.Parallel()
		s := Subject{Open: open(guests.Outcomes), Lacks: []string{"sleep", "ok"}}
		Run(t, s)
		RunCalls(t, s)
		RunStates(t, Subject{Open: open(guests.States)})
	})
	t.Run("extism", func(t *testing.T) {
		t.Parallel()
		Run(t, Subject{
			Open: func(t *testing.T, src runtime.Source) runtime.Plugin {
				src.Entry = "ok"
				return open(guests.Extism)(t, src)
			},
			Lacks: []string{
				"zero_length", "pull", "pieces", "fail_permanent", "fail_kind", "snooze", "fail_trap", "bad_pointer", "bad_result", "nope\x1b",
				"big_result", "emit_big", "wait_cancel", "progress", "sleep",
				"detailed", "no mailbox for the input", "stacks",
			},
		})
	})
	// For a command, the first line of its input says what to do.
	t.Run("wasi", func(t *testing.T) {
		t.Parallel()
		Run(t, Subject{
			Open: open(guests.Command),
			Call: func(behaviour, input string) *hostcall.Attempt { return Attempt("", behaviour+"\n"+input) },
			Lacks: []string{
				"zero_length", "pull", "pieces", "fail_kind", "snooze", "fail_trap", "bad_pointer", "bad_result", "nope\x1b",
				"big_result", "emit_big", "wait_cancel", "progress",
				"detailed", "echo a full mailbox", "no mailbox for the input", "stacks",
			},
			Once:     true,
			FailCode: jobhost.FailExit,
		})
	})
}
