package workertest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// compareSubmits requires exactly the jobs of the case, in order.
func (j *judge) compareSubmits() {
	want, got := j.test.Expect.Submits, j.box.submitted
	for i := range max(len(want), len(got)) {
		what := fmt.Sprintf("submit %d", i+1)
		switch {
		case i >= len(want):
			j.differ(what, "no such job", "a job of worker "+got[i].Worker+" with payload "+shown(got[i].Payload))
		case i >= len(got):
			j.differ(what, "a job of worker "+want[i].Worker, "no such job")
		default:
			j.compareSubmit(what, &want[i], &got[i])
		}
	}
}

func (j *judge) compareSubmit(what string, want *WantSubmit, got *submitted) {
	same(j, what+" worker", want.Worker, got.Worker)
	same(j, what+" entry", want.Entry, got.Entry)
	same(j, what+" id", want.ID, got.id)
	same(j, what+" content_type", want.ContentType, got.ContentType)
	same(j, what+" priority", want.Priority, got.Priority.String())
	same(j, what+" delay", want.Delay, got.Delay)
	same(j, what+" tasks", want.Tasks, max(got.Tasks, 1))
	if want.Payload != nil {
		j.found = append(j.found, want.Payload.compare(what+" payload", got.Payload)...)
	}
	if want.Labels != nil && !maps.Equal(want.Labels, got.Labels) {
		j.differ(what+" labels", labels(want.Labels), labels(got.Labels))
	}
	if want.Now != nil && *want.Now != got.now {
		j.differ(what+" now", strconv.FormatBool(*want.Now), strconv.FormatBool(got.now))
	}
}

func labels(m map[string]string) string {
	parts := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, name+"="+strconv.Quote(m[name]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " ")
}

// compareDefers requires exactly the requests of the case.
func (j *judge) compareDefers() {
	want, got := j.test.Expect.Defers, j.box.deferred
	for i := range max(len(want), len(got)) {
		what := fmt.Sprintf("defer %d", i+1)
		switch {
		case i >= len(want):
			j.differ(what, "no such request", got[i].method+" "+got[i].url)
		case i >= len(got):
			j.differ(what, strings.TrimSpace(want[i].Method+" "+want[i].URL), "no such request")
		default:
			j.compareDefer(what, &want[i], &got[i])
		}
	}
}

func (j *judge) compareDefer(what string, want *WantDefer, got *deferredRequest) {
	same(j, what+" method", want.Method, got.method)
	same(j, what+" url", want.URL, got.url)
	same(j, what+" entry", want.Entry, got.entry)
	if want.Args != nil {
		j.found = append(j.found, want.Args.compare(what+" args", got.args)...)
	}
	if want.Body != nil {
		j.found = append(j.found, want.Body.compare(what+" body", got.body)...)
	}
	for name, value := range want.Header {
		if values := http.Header(got.header).Values(name); !slices.Contains(values, value) {
			j.differ(what+" header "+name, strconv.Quote(value), strconv.Quote(strings.Join(values, ", ")))
		}
	}
}

// compareReports compares what was reported while the attempt ran.
func (j *judge) compareReports() {
	e := &j.test.Expect
	if e.Progress != nil && *e.Progress != j.box.progress {
		text := func(p [2]int64) string { return fmt.Sprintf("%d of %d", p[0], p[1]) }
		j.differ("progress", text(*e.Progress), text(j.box.progress))
	}
	if e.emits {
		for i := range max(len(e.Emits), len(j.box.emitted)) {
			what := fmt.Sprintf("emit %d", i+1)
			switch {
			case i >= len(e.Emits):
				j.differ(what, "no such message", shown(j.box.emitted[i]))
			case i >= len(j.box.emitted):
				j.differ(what, shown(e.Emits[i].bytes()), "no such message")
			default:
				j.found = append(j.found, e.Emits[i].compare(what, j.box.emitted[i])...)
			}
		}
	}
	for i := range e.Metrics {
		j.compareMetric(&e.Metrics[i])
	}
	for i := range e.States {
		j.compareState(&e.States[i])
	}
}

func (j *judge) compareMetric(want *WantMetric) {
	what := "metric " + want.Name
	i := slices.IndexFunc(j.box.metrics, func(m *metric) bool {
		return m.name == want.Name && (want.Kind == "" || metricKinds[m.kind] == want.Kind)
	})
	if i < 0 {
		names := make([]string, len(j.box.metrics))
		for k, m := range j.box.metrics {
			names[k] = metricKinds[m.kind] + " " + m.name
		}
		got := "no metrics"
		if len(names) > 0 {
			got = "only " + strings.Join(names, ", ")
		}
		j.differ(what, strings.TrimSpace("a metric "+want.Kind), got)
		return
	}
	got := j.box.metrics[i]
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	if want.Value != nil && *want.Value != got.value {
		j.differ(what+" value", number(*want.Value), number(got.value))
	}
	if want.Count >= 0 && want.Count != got.count {
		j.differ(what+" count", strconv.FormatInt(want.Count, 10), strconv.FormatInt(got.count, 10))
	}
}

func (j *judge) compareState(want *WantState) {
	what := "state " + want.Tag
	i := slices.IndexFunc(j.box.states, func(s GivenState) bool {
		return s.JobID == j.test.Job && s.TaskID == j.test.Task && s.Tag == want.Tag
	})
	if i < 0 {
		j.differ(what, "a state under that tag", "none")
		return
	}
	got := &j.box.states[i]
	if want.Status != nil && *want.Status != int64(got.Status) {
		j.differ(what+" status", strconv.FormatInt(*want.Status, 10), strconv.FormatInt(int64(got.Status), 10))
	}
	if want.Message != nil && *want.Message != got.Message {
		j.differ(what+" message", strconv.Quote(*want.Message), strconv.Quote(got.Message))
	}
	if want.Payload != nil {
		j.found = append(j.found, want.Payload.compare(what+" payload", got.Payload)...)
	}
}

// compareLogs requires the lines in order, possibly with others in between.
func (j *judge) compareLogs() {
	rest := strings.Split(strings.TrimSuffix(j.log, "\n"), "\n")
	for i, want := range j.test.Expect.Logs {
		k := slices.IndexFunc(rest, func(line string) bool {
			level, message, _ := strings.Cut(line, " ")
			return (want.Level == "" || want.Level == level) && strings.Contains(message, want.Message)
		})
		if k < 0 {
			text := strings.TrimSpace(want.Level + " " + want.Message)
			j.differ(fmt.Sprintf("log %d", i+1), "a line with "+strconv.Quote(text)+" after the ones before", "none")
			return
		}
		rest = rest[k+1:]
	}
}

// text describes a difference in a few lines.
func (d *Difference) text() string {
	if d.Diff != "" {
		return d.Diff
	}
	return "want " + d.Want + "\ngot  " + d.Got
}
