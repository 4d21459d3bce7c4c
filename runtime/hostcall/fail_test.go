package hostcall_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func TestFail(t *testing.T) {
	t.Parallel()
	const (
		retryable, permanent = hostcall.FailRetryable, hostcall.FailPermanent
		unknown              = jobhost.CategoryUnknown
		loud                 = jobhost.SeverityError
	)
	for _, tt := range []struct {
		name, text string
		kind       hostcall.FailKind
		want       jobhost.Failure
	}{
		{"plain", "it broke\n", retryable, jobhost.Failure{Code: "failed", Category: unknown, Severity: loud, Message: "it broke", Retryable: true}},
		{"nothing", "", permanent, jobhost.Failure{Code: "failed", Category: unknown, Severity: loud}},
		{"control characters", "a\x1b[1m\nb", permanent, jobhost.Failure{Code: "failed", Category: unknown, Severity: loud, Message: `a\x1b[1m\nb`}},
		{
			"everything", `{"code":"E.1","category":"network","severity":"info","message":"m","context":{"a": [1, 2]},"retryable":true}`, permanent,
			jobhost.Failure{Code: "E.1", Category: jobhost.CategoryNetwork, Severity: jobhost.SeverityInfo, Message: "m", Context: `{"a":[1,2]}`, Retryable: true},
		},
		{"nothing in JSON", " {}", retryable, jobhost.Failure{Code: "failed", Category: unknown, Severity: loud, Retryable: true}},
		{
			"nonsense", `{"code":"a b","category":"cosmic","severity":"meh","message":"m","context":7}`, retryable,
			jobhost.Failure{Code: "failed", Category: unknown, Severity: loud, Message: "m", Context: `{"value":7}`, Retryable: true},
		},
		{"no context", `{"message":"m","context":null}`, retryable, jobhost.Failure{Code: "failed", Category: unknown, Severity: loud, Message: "m", Retryable: true}},
		{"wrong types", `{"message":7}`, retryable, jobhost.Failure{Code: "failed", Category: unknown, Severity: loud, Message: `{"message":7}`, Retryable: true}},
		{"not quite JSON", `{"message":`, retryable, jobhost.Failure{Code: "failed", Category: unknown, Severity: loud, Message: `{"message":`, Retryable: true}},
		{"two documents", `{"message":"a"} {}`, retryable, jobhost.Failure{Code: "failed", Category: unknown, Severity: loud, Message: `{"message":"a"} {}`, Retryable: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			at := &hostcall.Attempt{}
			if e := at.Fail(tt.kind, []byte(tt.text)); e != hostcall.OK {
				t.Errorf("errno %d", e)
			}
			got := at.Outcome(nil)
			if got.Kind != jobhost.OutcomeFailed || *got.Failure != tt.want {
				t.Errorf("got  %+v\nwant %+v", got.Failure, tt.want)
			}
		})
	}
}

func TestSnooze(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"5s": 5 * time.Second, " 2d\n": 48 * time.Hour, `{"snooze":"250ms"}`: 250 * time.Millisecond,
		`{"after_ms":0.5}`: 500 * time.Microsecond, `{"after_ms":1e300}`: jobhost.MaxDelay, "2000000h": jobhost.MaxDelay,
		// These are not a time to come.
		"": 0, "soon": 0, "-5s": 0, "0s": 0, `{"after_ms":0}`: 0, `{"after_ms":-7}`: 0, `{}`: 0, "5": 0,
	} {
		at := &hostcall.Attempt{}
		e := at.Fail(hostcall.FailSnooze, []byte(text))
		got := at.Outcome(nil)
		if want > 0 && (e != hostcall.OK || got.Kind != jobhost.OutcomeSnoozed || got.Snooze != want) {
			t.Errorf("%s: errno %d, %+v", text, e, got)
		}
		if want == 0 && (e != hostcall.ErrInvalid || got.Kind != jobhost.OutcomeFailed || !got.Failure.Retryable || got.Failure.Code != "bad_snooze") {
			t.Errorf("%s: errno %d, %+v", text, e, got)
		}
	}
}

func TestLastFailCounts(t *testing.T) {
	t.Parallel()
	at := &hostcall.Attempt{}
	at.Fail(hostcall.FailSnooze, []byte("5s"))
	at.Fail(hostcall.FailPermanent, []byte("no"))
	if got := at.Outcome([]byte("result")); got.Kind != jobhost.OutcomeFailed || got.Failure.Retryable || got.Output != nil {
		t.Errorf("%+v", got)
	}
	at.Fail(hostcall.FailSnooze, []byte("5s"))
	if got := at.Outcome(nil); got.Kind != jobhost.OutcomeSnoozed || got.Failure != nil {
		t.Errorf("%+v", got)
	}
}

func TestFailBounds(t *testing.T) {
	t.Parallel()
	at := &hostcall.Attempt{}
	at.Fail(hostcall.FailRetryable, []byte(strings.Repeat("é", hostcall.MaxFailBytes)))
	if m := at.Outcome(nil).Failure.Message; len(m) > hostcall.MaxMessageBytes+20 || !utf8.ValidString(m) || !strings.HasSuffix(m, " …(cut)") {
		t.Errorf("message of %d bytes: …%q", len(m), m[len(m)-20:])
	}
	at.Fail(hostcall.FailRetryable, []byte(`{"context":{"a":"`+strings.Repeat("x", hostcall.MaxContextBytes)+`"}}`))
	if c := at.Outcome(nil).Failure.Context; !strings.HasPrefix(c, `{"omitted":`) {
		t.Errorf("context %.50q", c)
	}
}

func FuzzFail(f *testing.F) {
	f.Add(int32(1), []byte("plain"))
	f.Add(int32(2), []byte(`{"code":"c","category":"network","message":"m\u0000","context":{"a":"\ud800"},"retryable":false}`))
	f.Add(int32(3), []byte(`{"after_ms":1e999}`))
	f.Add(int32(3), []byte("1h"))
	f.Add(int32(9), []byte("\xff{\x1b"))
	f.Fuzz(func(t *testing.T, kind int32, text []byte) {
		at := &hostcall.Attempt{}
		e := at.Fail(hostcall.FailKind(kind), text)
		got := at.Outcome([]byte("result"))
		switch got.Kind {
		case jobhost.OutcomeSnoozed:
			if e != hostcall.OK || got.Snooze <= 0 || got.Snooze > jobhost.MaxDelay {
				t.Fatalf("errno %d, snooze %v", e, got.Snooze)
			}
		case jobhost.OutcomeFailed:
			checkFailure(t, got.Failure)
		default:
			t.Fatalf("a failure became %v", got.Kind)
		}
	})
}

func checkFailure(t *testing.T, f *jobhost.Failure) {
	t.Helper()
	if f.Code == "" || len(f.Code) > hostcall.MaxCodeBytes || strings.ContainsAny(f.Code, " \n\x1b") {
		t.Errorf("code %q", f.Code)
	}
	if !slices.Contains(jobhost.Categories(), f.Category) || !slices.Contains(jobhost.Severities(), f.Severity) {
		t.Errorf("category %q, severity %q", f.Category, f.Severity)
	}
	checkSafe(t, f.Message)
	if len(f.Message) > hostcall.MaxMessageBytes+20 || len(f.Context) > 2*hostcall.MaxContextBytes {
		t.Errorf("message of %d, context of %d bytes", len(f.Message), len(f.Context))
	}
	var object map[string]any
	if f.Context != "" && (json.Unmarshal([]byte(f.Context), &object) != nil || !utf8.ValidString(f.Context)) {
		t.Errorf("context %q", f.Context)
	}
}
