package jobhost_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jobhost/jobhost"
)

func TestCodeOf(t *testing.T) {
	t.Parallel()
	full := &jobhost.Error{Code: jobhost.CodeExhausted, Message: "the queue is full", Hint: "wait", Cause: io.EOF}
	for _, tc := range []struct {
		name string
		err  error
		code jobhost.Code
		hint string
	}{
		{"nil", nil, "", ""},
		{"an error of others", io.EOF, jobhost.CodeInternal, ""},
		{"itself", full, jobhost.CodeExhausted, "wait"},
		{"wrapped", fmt.Errorf("submit: %w", full), jobhost.CodeExhausted, "wait"},
		{"joined", errors.Join(io.EOF, full), jobhost.CodeExhausted, "wait"},
		{"the outer one wins", &jobhost.Error{Code: jobhost.CodeDenied, Cause: full}, jobhost.CodeDenied, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := jobhost.CodeOf(tc.err); got != tc.code {
				t.Errorf("code %q, want %q", got, tc.code)
			}
			if got := jobhost.HintOf(tc.err); got != tc.hint {
				t.Errorf("hint %q, want %q", got, tc.hint)
			}
		})
	}
}

func TestErrorIs(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("submit: %w", &jobhost.Error{Code: jobhost.CodeConflict, Message: "the id is taken", Cause: io.EOF})
	for _, tc := range []struct {
		name   string
		target error
		want   bool
	}{
		{"same code", &jobhost.Error{Code: jobhost.CodeConflict}, true},
		{"other code", &jobhost.Error{Code: jobhost.CodeDenied}, false},
		{"another error of the same code", &jobhost.Error{Code: jobhost.CodeConflict, Message: "something else"}, false},
		{"the cause", io.EOF, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := errors.Is(err, tc.target); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	e := &jobhost.Error{Code: jobhost.CodeInternal, Message: "open store"}
	if e.Error() != "open store" {
		t.Errorf("got %q", e)
	}
	e.Cause = io.ErrUnexpectedEOF
	if e.Error() != "open store: unexpected EOF" {
		t.Errorf("got %q", e)
	}
}

func ExampleCodeOf() {
	err := fmt.Errorf("submit job: %w", &jobhost.Error{Code: jobhost.CodeExhausted, Message: "the queue of resize is full"})
	if jobhost.CodeOf(err) == jobhost.CodeExhausted {
		fmt.Println("later:", err)
	}
	// Output: later: submit job: the queue of resize is full
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	err := jobhost.Invalid("worker", "see the list", "there is no %q", "x")
	var e *jobhost.Error
	if !errors.As(err, &e) || e.Code != jobhost.CodeInvalid || e.Field != "worker" || e.Hint != "see the list" || e.Message != `there is no "x"` {
		t.Errorf("%+v", err)
	}
}
