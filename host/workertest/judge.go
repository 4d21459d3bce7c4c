package workertest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jobhost/jobhost"
)

// judge compares what an attempt did with what its case expects.
type judge struct {
	test    *Case
	box     *box
	outcome *jobhost.Outcome
	log     string
	found   []Difference
	notes   []string
}

// compare returns the differences.
func (j *judge) compare() []Difference {
	j.compareOutcome()
	j.compareRequests()
	succeeded := j.outcome.Kind == jobhost.OutcomeSucceeded
	if e := &j.test.Expect; succeeded || len(e.Submits) > 0 || len(e.Defers) > 0 {
		// With any other outcome they are dropped.
		j.compareSubmits()
		j.compareDefers()
	}
	j.compareKV(succeeded)
	j.compareReports()
	j.compareLogs()
	return j.found
}

// differ records a difference.
func (j *judge) differ(what, want, got string) {
	j.found = append(j.found, Difference{What: what, Want: want, Got: got})
}

// same compares two values; the zero value means that anything is wanted.
func same[T comparable](j *judge, what string, want, got T) {
	var open T
	if want != open && want != got {
		j.differ(what, quoted(want), quoted(got))
	}
}

func quoted(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprint(v)
}

func (j *judge) compareOutcome() {
	e := &j.test.Expect
	o := j.outcome
	switch {
	case e.Fail != nil && o.Kind == jobhost.OutcomeFailed:
		j.compareFailure(e.Fail, o.Failure)
	case e.Fail != nil:
		j.differ("outcome", "a failure", j.outcomeText())
	case e.Snooze > 0 && o.Kind == jobhost.OutcomeSnoozed:
		if o.Snooze != e.Snooze {
			j.differ("snooze", e.Snooze.String(), o.Snooze.String())
		}
	case e.Snooze > 0:
		j.differ("outcome", "a snooze of "+e.Snooze.String(), j.outcomeText())
	case o.Kind != jobhost.OutcomeSucceeded:
		j.differ("outcome", "success", j.outcomeText())
	case e.Match != nil:
		if !e.Match.Match(o.Output) {
			j.differ("output", "a match of "+e.Match.String(), shown(o.Output))
		}
	default:
		j.compareOutput()
	}
}

func (j *judge) compareOutput() {
	f, out := &j.test.Output, j.outcome.Output
	if !f.exists && f.inline == nil {
		if len(out) > 0 {
			d := compareBytes("output", nil, out)[0]
			d.Want = "nothing, since there is no file for it"
			j.found = append(j.found, d)
			j.notes = append(j.notes, "--update writes the output to "+nameFor(j.test.stem, out))
		}
		return
	}
	j.found = append(j.found, f.compare(out, j.test.Expect.Ignore)...)
	if f.inline == nil && f.format() == exact && !bytes.Equal(f.data, out) && bytes.Equal(trimmed(f.data), trimmed(out)) {
		j.notes = append(j.notes, "they differ in the line ends at the end only, which don't count in a file whose name ends with .txt")
	}
}

// outcomeText describes how the attempt ended.
func (j *judge) outcomeText() string {
	o := j.outcome
	switch o.Kind {
	case jobhost.OutcomeFailed:
		f := o.Failure
		kind := "permanent"
		if f.Retryable {
			kind = "retryable"
		}
		text := fmt.Sprintf("a failure: %s: %s (%s, %s)", f.Code, f.Message, f.Category, kind)
		if f.Context != "" {
			text += "\ncontext: " + f.Context
		}
		if f.Stack != "" {
			text += "\n" + f.Stack
		}
		return text
	case jobhost.OutcomeSnoozed:
		return "a snooze of " + o.Snooze.String()
	case jobhost.OutcomeSucceeded:
		return "success with the output " + shown(o.Output)
	}
	return o.Kind.String()
}

func (j *judge) compareFailure(want *WantFail, got *jobhost.Failure) {
	before := len(j.found)
	same(j, "fail code", want.Code, got.Code)
	same(j, "fail category", want.Category, string(got.Category))
	same(j, "fail severity", want.Severity, string(got.Severity))
	if !strings.Contains(got.Message, want.Message) {
		j.differ("fail message", "one with "+strconv.Quote(want.Message), strconv.Quote(got.Message))
	}
	if want.Retryable != nil && *want.Retryable != got.Retryable {
		j.differ("fail retryable", strconv.FormatBool(*want.Retryable), strconv.FormatBool(got.Retryable))
	}
	if want.Context != nil {
		j.found = append(j.found, want.Context.compare("fail context", []byte(got.Context))...)
	}
	if len(j.found) > before {
		j.notes = append(j.notes, "it was "+j.outcomeText())
	}
}

// compareRequests requires a response for each request, and a request for each
// response.
func (j *judge) compareRequests() {
	for _, text := range j.box.unanswered {
		j.differ("request", "one that the case answers", text)
	}
	for i, m := range j.test.Requests {
		if m.times >= 0 && m.used != m.times {
			j.differ(fmt.Sprintf("http %d", i+1), fmt.Sprintf("%s, sent %s", m, times(m.times)), "sent "+times(m.used))
		}
	}
	if left := j.test.Children[j.box.ended:]; len(left) > 0 {
		j.differ("child", "a wait for a job of worker "+left[0].Worker, "none")
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

func (j *judge) compareKV(succeeded bool) {
	want := j.test.Expect.KV
	if want == nil {
		return
	}
	got := j.box.kept(succeeded)
	names := slices.Collect(maps.Keys(want))
	for name := range got {
		ignored := j.test.Expect.AnyKeys != nil && j.test.Expect.AnyKeys.MatchString(name)
		if _, ok := want[name]; !ok && !ignored {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	text := func(values map[string]string, name string) string {
		if v, ok := values[name]; ok {
			return shown([]byte(v))
		}
		return "no such key"
	}
	for _, name := range names {
		if w, g := text(want, name), text(got, name); w != g || want[name] != got[name] {
			j.differ("kv "+name, w, g)
		}
	}
	if !succeeded && len(j.found) > 0 {
		j.notes = append(j.notes, "without success, changes of keys come to nothing")
	}
}
