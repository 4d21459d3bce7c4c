package hostcall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// FailKind is what a guest wants to happen to its failed attempt; the numbers
// are part of the ABI.
type FailKind int32

// The kinds of failure.
const (
	FailRetryable FailKind = 1 // may be retried
	FailPermanent FailKind = 2 // dead at once
	FailSnooze    FailKind = 3 // run again later, without counting the attempt
)

// Bounds of what a guest says about its failure.
const (
	MaxFailBytes    = 64 << 10 // of the text as a whole
	MaxMessageBytes = 4 << 10
	MaxContextBytes = 16 << 10
	MaxCodeBytes    = 64
)

// failText is the JSON form of the text of Fail. All fields are optional.
type failText struct {
	Code      string          `json:"code"`
	Category  string          `json:"category"`
	Severity  string          `json:"severity"`
	Message   string          `json:"message"`
	Context   json.RawMessage `json:"context"`
	Retryable *bool           `json:"retryable"`
	Snooze    string          `json:"snooze"`
	AfterMS   *float64        `json:"after_ms"`
}

// Fail sets how the attempt ends, whatever the entry returns. The last call
// counts. text is a message, or a JSON object:
//
//	{"code": "quota", "category": "resource", "severity": "warning",
//	 "message": "no quota left", "context": {"account": 7}, "retryable": false}
//
// All members are optional. A code that isn't 1 to 64 of A-Z a-z 0-9 . _ -
// becomes "failed", an unknown category "unknown", an unknown severity "error";
// retryable overrides kind. Text that isn't such an object is the message
// itself. Messages are escaped and cut at [MaxMessageBytes].
//
// With [FailSnooze] the text says for how long: a duration such as 5s, or JSON
// with "snooze": "5s" or "after_ms": 5000.
//
// A guest that calls Fail never succeeds: a snooze without a positive duration
// and an unknown kind are recorded as retryable failures, and return
// [ErrInvalid].
func (a *Attempt) Fail(kind FailKind, text []byte) Errno {
	details := parseFail(text)
	a.failure, a.snooze = nil, 0
	switch kind {
	case FailRetryable, FailPermanent:
		a.failure = a.record(details, kind == FailRetryable)
		return OK
	case FailSnooze:
		if a.snooze = details.wait(); a.snooze > 0 {
			return OK
		}
		details.Code = "bad_snooze"
		details.Message = "the worker asked to run later, but not when: " + details.Message
	default:
		details.Message = fmt.Sprintf("unknown kind of failure %d: %s", kind, details.Message)
	}
	a.failure = a.record(details, true)
	return ErrInvalid
}

// parseFail parses the text of a failure. It never fails: anything that isn't JSON is a message.
func parseFail(text []byte) failText {
	if len(text) <= MaxFailBytes && bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		var details failText
		if json.Unmarshal(text, &details) == nil {
			return details
		}
	}
	// record escapes it; here the text is only kept from growing.
	return failText{Message: string(text[:min(len(text), MaxFailBytes)])}
}

func (a *Attempt) record(d failText, retryable bool) *jobhost.Failure {
	f := &jobhost.Failure{
		Code:      d.Code,
		Category:  jobhost.Category(d.Category),
		Severity:  jobhost.Severity(d.Severity),
		Message:   string(text.AppendLine(nil, trimNewlines([]byte(d.Message)), MaxMessageBytes)),
		Context:   contextText(d.Context),
		Retryable: retryable,
		Task:      a.Task,
		Attempt:   a.Number,
	}
	if d.Retryable != nil {
		f.Retryable = *d.Retryable
	}
	if !isCode(f.Code) {
		f.Code = jobhost.FailWorker
	}
	if !slices.Contains(jobhost.Categories(), f.Category) {
		f.Category = jobhost.CategoryUnknown
	}
	if !slices.Contains(jobhost.Severities(), f.Severity) {
		f.Severity = jobhost.SeverityError
	}
	return f
}

// wait returns how long a snooze is, at most [jobhost.MaxDelay]; 0 = not given.
func (d *failText) wait() time.Duration {
	if d.AfterMS != nil {
		ms := *d.AfterMS
		if most := float64(jobhost.MaxDelay / time.Millisecond); ms > most {
			return jobhost.MaxDelay
		}
		return time.Duration(math.Ceil(max(ms, 0) * float64(time.Millisecond)))
	}
	text := d.Snooze
	if text == "" {
		text = strings.TrimSpace(d.Message)
	}
	wait, err := jobhost.ParseDuration(text)
	if err != nil {
		return 0
	}
	return min(max(time.Duration(wait), 0), jobhost.MaxDelay)
}

// contextText returns the context as the compact JSON text of an object.
func contextText(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var b bytes.Buffer
	// raw is valid: it is part of a document that was parsed.
	if err := json.Compact(&b, raw); err != nil || b.Len() > MaxContextBytes {
		return fmt.Sprintf(`{"omitted":"%d bytes are over the limit of %d"}`, len(raw), MaxContextBytes)
	}
	text := strings.ToValidUTF8(b.String(), "\uFFFD")
	if text[0] != '{' {
		text = `{"value":` + text + `}`
	}
	return text
}

func isCode(s string) bool {
	if s == "" || len(s) > MaxCodeBytes {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return r != '.' && r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}
