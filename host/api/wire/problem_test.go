package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// TestProblemThereAndBack checks that an error arrives as it was, but for its cause.
func TestProblemThereAndBack(t *testing.T) {
	t.Parallel()
	full := &jobhost.Error{
		Code: jobhost.CodeExhausted, Message: "the queue is full", Field: "worker", Hint: "wait",
		RetryAfter: 250 * time.Millisecond, Cause: io.ErrUnexpectedEOF,
	}
	codes := map[jobhost.Code]int{
		jobhost.CodeInvalid: 400, jobhost.CodeDenied: 403, jobhost.CodeNotFound: 404, jobhost.CodeConflict: 409,
		jobhost.CodeTooLarge: 413, jobhost.CodeExhausted: 429, jobhost.CodeInternal: 500, jobhost.CodeDamaged: 500, jobhost.CodeUnavailable: 503, "new": 500,
	}
	for code, status := range codes {
		full.Code = code
		p := wire.NewProblem(fmt.Errorf("submit: %w", full))
		if p.Status != status || p.Type != "urn:jobhost:problem:"+string(code) {
			t.Errorf("code %s: got %+v, want status %d", code, p, status)
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var got wire.Problem
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		want := *full
		want.Cause = nil
		if e, ok := got.Err().(*jobhost.Error); !ok || *e != want { //nolint:errorlint // Err returns it as it is
			t.Errorf("got %+v, want %+v", e, want)
		}
	}
}

func TestProblemWithManyFaults(t *testing.T) {
	t.Parallel()
	spec := jobhost.Spec{Worker: "W", Tasks: -1, MaxAttempts: -1}
	p := wire.NewProblem(spec.Check())
	if len(p.Errors) != 3 || p.Field != "worker" {
		t.Fatalf("got %+v, want three faults", p)
	}
	var fields []string
	for _, err := range p.Err().(interface{ Unwrap() []error }).Unwrap() {
		fields = append(fields, err.(*jobhost.Error).Field) //nolint:errorlint // Err returns them as they are
	}
	if got := fmt.Sprint(fields); got != "[worker tasks max_attempts]" {
		t.Errorf("got faults %s", got)
	}
}

func TestProblemOfUnknownError(t *testing.T) {
	t.Parallel()
	p := wire.NewProblem(errors.New("open /secret: no"))
	if p.Code != jobhost.CodeInternal || p.Status != 500 || p.Detail != "something went wrong inside of the host" {
		t.Errorf("got %+v", p)
	}
}

// TestAppendAnswer checks the quick encoding against the slow one.
func TestAppendAnswer(t *testing.T) {
	t.Parallel()
	for _, r := range []jobhost.Receipt{
		{ID: "a", State: jobhost.Ready}, {ID: `"\<` + "\u2028", State: jobhost.Dead, Deduplicated: true},
	} {
		var answer wire.Answer
		if err := json.Unmarshal(wire.AppendAnswer(nil, 7, &r), &answer); err != nil {
			t.Fatal(err)
		}
		if answer.Index != 7 || answer.ID != r.ID || answer.State != r.State || answer.Deduplicated != r.Deduplicated {
			t.Errorf("got %+v, want %+v", answer, r)
		}
		var receipt jobhost.Receipt
		if err := json.Unmarshal(wire.AppendReceipt(nil, &r), &receipt); err != nil || receipt != r {
			t.Errorf("got %+v, %v; want %+v", receipt, err, r)
		}
	}
}

func TestTaskResult(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"":         `{"task":1,"state":"succeeded","size":0,"result":""}`,
		"a":        `{"task":1,"state":"succeeded","size":1,"result":"a"}`,
		"\xff\xfe": `{"task":1,"state":"succeeded","size":2,"result_base64":"//4="}`,
	} {
		r := wire.TaskResult{Task: 1, State: jobhost.Succeeded}
		r.Set([]byte(data))
		text, err := json.Marshal(r)
		if err != nil || string(text) != want || string(r.Data()) != data {
			t.Errorf("got %s (%q), %v; want %s", text, r.Data(), err, want)
		}
	}
}
