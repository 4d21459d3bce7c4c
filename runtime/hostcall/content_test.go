package hostcall_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// contents are services that keep contents in memory.
type contents struct {
	hostcall.Services
	input    io.Reader
	inputErr error
	output   bytes.Buffer
	spillErr error // of Spill
	writeErr error // of what it returns
}

func (c *contents) OpenInput(*hostcall.Attempt) (io.Reader, error) { return c.input, c.inputErr }

func (c *contents) Spill(*hostcall.Attempt) (io.Writer, error) { return c, c.spillErr }

func (c *contents) Write(p []byte) (int, error) {
	if c.writeErr != nil {
		return 0, c.writeErr
	}
	return c.output.Write(p)
}

var errAway = &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the payload store doesn't answer", Cause: errors.New("dial 10.0.0.1")}

func TestLargeInput(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 1000)
	c := &contents{input: iotest.HalfReader(strings.NewReader(text))}
	at := &hostcall.Attempt{LargeInput: 1000, Services: c}
	var got []byte
	for buffer := make([]byte, 300); ; {
		if left := at.UnreadInput(); left != int64(1000-len(got)) {
			t.Errorf("%d bytes are left after %d", left, len(got))
		}
		n, err := at.ReadInput(buffer)
		got = append(got, buffer[:n]...)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if string(got) != text || at.HasLost() {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestLoadInput(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 1000)
	for _, c := range []struct {
		name     string
		services hostcall.Services
		memory   int64
		code     string // of the failure; "" = none
		retry    bool
	}{
		{"fits", &contents{input: strings.NewReader(text)}, 1000, "", false},
		{"too large", &contents{input: strings.NewReader(text)}, 999, jobhost.FailInputTooLarge, false},
		{"cut off", &contents{input: strings.NewReader(text[1:])}, 1000, jobhost.FailPayload, false},
		{"away", &contents{inputErr: errAway}, 1000, jobhost.FailPayload, true},
		{"damaged at its end", &contents{input: io.MultiReader(strings.NewReader(text), iotest.ErrReader(errors.New("damaged")))}, 1000, jobhost.FailPayload, false},
		{"no stores", nil, 1000, jobhost.FailPayload, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at := &hostcall.Attempt{LargeInput: 1000, Services: c.services}
			outcome, failed := at.LoadInput(c.memory)
			if failed != (c.code != "") || !failed && string(at.Input) != text {
				t.Fatalf("got %+v and %d bytes", outcome, len(at.Input))
			}
			if failed && (outcome.Failure.Code != c.code || outcome.Failure.Retryable != c.retry || strings.Contains(outcome.Failure.Message, "10.0.0.1")) {
				t.Errorf("got %+v", outcome.Failure)
			}
		})
	}
}

// TestLostInput: an attempt whose payload was lost has failed, whatever its guest reports.
func TestLostInput(t *testing.T) {
	t.Parallel()
	at := &hostcall.Attempt{LargeInput: 10, Services: &contents{input: iotest.ErrReader(errAway)}, Limits: hostcall.Limits{OutputBytes: 100}}
	if _, err := at.ReadInput(make([]byte, 5)); err == nil {
		t.Fatal("it was read")
	}
	at.AppendOutput([]byte("as if nothing had happened"))
	if outcome := at.Outcome(nil); outcome.Kind != jobhost.OutcomeFailed || outcome.Failure.Code != jobhost.FailPayload || !outcome.Failure.Retryable {
		t.Errorf("got %+v", outcome)
	}
	late := &hostcall.Attempt{LargeInput: 10, Services: &contents{input: iotest.ErrReader(errAway)}, Deadline: time.Now().Add(-time.Second)}
	_, _ = late.ReadInput(make([]byte, 5))
	if outcome := late.Outcome(nil); outcome.Failure == nil || outcome.Failure.Code != jobhost.FailTimeout {
		t.Errorf("after the deadline: %+v", outcome)
	}
}

func TestSpill(t *testing.T) {
	t.Parallel()
	limits := hostcall.Limits{OutputBytes: 100, SpillBytes: 10}
	for _, c := range []struct {
		name     string
		pieces   []string
		result   string
		memory   string // the outcome's output
		spilled  string
		overflow bool
	}{
		{"none", nil, "", "", "", false},
		{"small", []string{"12345"}, "67890", "1234567890", "", false},
		{"large piece", []string{"12345678901"}, "", "", "12345678901", false},
		{"pieces", []string{"12345", "67890", "1"}, "2", "", "123456789012", false},
		{"by the result", []string{"12345"}, "678901", "", "12345678901", false},
		{"over the limit", []string{strings.Repeat("x", 60), strings.Repeat("y", 41)}, "", "", strings.Repeat("x", 60), true},
		{"over the limit by the result", []string{strings.Repeat("x", 60)}, strings.Repeat("y", 41), "", strings.Repeat("x", 60), true},
		{"just the limit", []string{strings.Repeat("x", 60)}, strings.Repeat("y", 40), "", strings.Repeat("x", 60) + strings.Repeat("y", 40), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			services := &contents{}
			at := &hostcall.Attempt{Limits: limits, Services: services}
			for _, piece := range c.pieces {
				at.AppendOutput([]byte(piece))
			}
			outcome := at.Outcome([]byte(c.result))
			if c.overflow != (outcome.Failure != nil && outcome.Failure.Code == jobhost.FailOutputTooLarge) ||
				!c.overflow && outcome.Kind != jobhost.OutcomeSucceeded {
				t.Errorf("got %+v", outcome)
			}
			if string(outcome.Output) != c.memory || services.output.String() != c.spilled {
				t.Errorf("got %q in memory and %q elsewhere", outcome.Output, services.output.String())
			}
		})
	}
}

func TestSpillLost(t *testing.T) {
	t.Parallel()
	for name, services := range map[string]*contents{"to open": {spillErr: errAway}, "to write": {writeErr: errAway}} {
		at := &hostcall.Attempt{Limits: hostcall.Limits{OutputBytes: 100, SpillBytes: 10}, Services: services}
		for range 2 { // the second one finds it lost
			if e := at.AppendOutput([]byte("12345678901")); e != hostcall.ErrIO {
				t.Errorf("%s: got %d", name, e)
			}
		}
		if outcome := at.Outcome(nil); outcome.Failure == nil || outcome.Failure.Code != jobhost.FailPayload || !outcome.Failure.Retryable {
			t.Errorf("%s: got %+v", name, outcome)
		}
	}
}
