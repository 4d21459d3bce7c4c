package hostcall

import (
	"encoding/json"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// MaxStackBytes bounds the stack of a failure.
const MaxStackBytes = 8 << 10

// Declare returns the outcome of an attempt that has failed in another process, as that
// reports it. Nothing in the report is trusted: invalid values are replaced as in
// [Attempt.Fail], and what could control a terminal is escaped.
func (a *Attempt) Declare(f *jobhost.Failure) jobhost.Outcome {
	d := failText{
		Code: f.Code, Category: string(f.Category), Severity: string(f.Severity), Message: f.Message[:min(len(f.Message), MaxFailBytes)],
	}
	if context := []byte(f.Context); len(context) <= MaxFailBytes && json.Valid(context) {
		d.Context = context
	}
	failure := a.record(d, f.Retryable)
	failure.Stack = escapeLines(f.Stack)
	return jobhost.Outcome{Kind: jobhost.OutcomeFailed, Failure: failure}
}

// Snoozed returns the outcome of an attempt that another process wants to run again
// after ms milliseconds.
func (a *Attempt) Snoozed(ms int64) jobhost.Outcome {
	after := float64(ms)
	details := failText{AfterMS: &after}
	if wait := details.wait(); wait > 0 {
		return jobhost.Outcome{Kind: jobhost.OutcomeSnoozed, Snooze: wait}
	}
	return a.Failure("bad_snooze", jobhost.CategoryUnknown, "the worker asked to run later, but not when")
}

// escapeLines escapes each line of a text, and cuts the text at [MaxStackBytes].
func escapeLines(s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(s[:min(len(s), 4*MaxStackBytes)], "\n") {
		line = text.Line(line, 512)
		if b.Len()+len(line) > MaxStackBytes {
			break
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}
