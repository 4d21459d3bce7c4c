package workertest

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// Expect is what a case expects besides the output. Anything it doesn't mention is
// not compared, except for jobs and requests, which are effects like the output.
type Expect struct {
	Match    *regexp.Regexp    // of the output, instead of a file
	Ignore   []string          // names in JSON that are ignored
	Fail     *WantFail         // nil = it succeeds
	Snooze   time.Duration     // 0 = it doesn't
	KV       map[string]string // all keys afterwards; nil = not compared
	AnyKeys  *regexp.Regexp    // keys that are ignored; nil = none
	Progress *[2]int64         // done and total of the last report
	Logs     []WantLog         // in this order, possibly with others in between
	Emits    []value
	emits    bool // Emits is complete
	Submits  []WantSubmit
	Defers   []WantDefer
	Metrics  []WantMetric
	States   []WantState
}

// WantFail is a failure; empty fields are not compared.
type WantFail struct {
	Code, Category, Severity, Message string
	Retryable                         *bool
	Context                           *value
}

// WantLog is a line of the log that contains a text.
type WantLog struct{ Level, Message string }

// WantSubmit is a job that is submitted; empty fields are not compared.
type WantSubmit struct {
	Worker, Entry, ID, ContentType string
	Payload                        *value
	Priority                       string
	Delay                          time.Duration
	Tasks                          int
	Labels                         map[string]string
	Now                            *bool
}

// WantDefer is a request that is left to the host.
type WantDefer struct {
	Method, URL, Entry string
	Args, Body         *value
	Header             map[string]string
}

// WantMetric is a metric after the attempt: the sum of a counter or histogram, the
// last value of a gauge.
type WantMetric struct {
	Name, Kind string
	Value      *float64
	Count      int64 // of observations; -1 = any
}

// WantState is the last state under a tag.
type WantState struct {
	Tag     string
	Status  *int64
	Message *string
	Payload *value
}

func (c *Case) readExpect(t *manifest.Table) {
	if t == nil {
		return
	}
	e := &c.Expect
	e.Ignore = t.Texts("ignore")
	if pattern := t.Text("match"); pattern != "" {
		var err error
		if e.Match, err = regexp.Compile(pattern); err != nil {
			t.Faultf("match", "write it as Go's package regexp has it", "%v", err)
		}
	}
	if text, given := readValue(t, "output"); given {
		c.Output.inline = text
	}
	e.Snooze = t.Duration("snooze", jobhost.MaxDelay)
	e.readFail(t.Table("fail"))
	if e.Fail != nil && e.Snooze > 0 {
		t.Faultf("snooze", "a case has one outcome", "the case fails already")
	}
	e.KV = t.TextTable("kv")
	if names := t.Texts("ignore_keys"); len(names) > 0 {
		patterns := make([]string, len(names))
		for i, name := range names {
			patterns[i] = anything(name)
		}
		e.AnyKeys = regexp.MustCompile(strings.Join(patterns, "|"))
	}
	if p := t.Table("progress"); p != nil {
		e.Progress = &[2]int64{p.Whole("done", 0, 1<<62, 0), p.Whole("total", 0, 1<<62, 0)}
		p.Close()
	}
	for _, l := range t.Tables("log") {
		e.Logs = append(e.Logs, WantLog{Level: l.OneOf("level", "debug", "info", "warn", "error"), Message: l.Text("message")})
		l.Close()
	}
	e.emits = t.Has("emit")
	e.readEmits(t)
	e.readEffects(t)
	e.readReports(t)
	t.Close()
}

func (e *Expect) readFail(t *manifest.Table) {
	if t == nil {
		return
	}
	categories := make([]string, 0, 7)
	for _, c := range jobhost.Categories() {
		categories = append(categories, string(c))
	}
	e.Fail = &WantFail{
		Code: t.Text("code"), Category: t.OneOf("category", categories...), Message: t.Text("message"),
		Severity: t.OneOf("severity", "critical", "error", "warning", "info"), Retryable: flag(t, "retryable"),
	}
	e.Fail.Context, _ = readValue(t, "context")
	t.Close()
}

func (e *Expect) readEmits(t *manifest.Table) {
	list, ok := t.Value("emit").([]any)
	if tables, are := t.Value("emit").([]map[string]any); are {
		ok = true
		for _, table := range tables {
			list = append(list, table)
		}
	}
	if !ok && e.emits {
		t.Faultf("emit", `such as ["half", { done = true }]`, "the messages are a list")
	}
	for _, v := range list {
		one, err := valueOf(v)
		if err != nil {
			t.Fault("emit", err)
		}
		e.Emits = append(e.Emits, one)
	}
}

func (e *Expect) readEffects(t *manifest.Table) {
	for _, s := range t.Tables("submit") {
		w := WantSubmit{
			Worker: s.Text("worker"), Entry: s.Text("entry"), ID: s.Text("id"), ContentType: s.Text("content_type"),
			Priority: priority(s), Delay: s.Duration("delay", jobhost.MaxDelay), Tasks: int(s.Whole("tasks", 1, jobhost.MaxTasks, 0)),
			Labels: s.TextTable("labels"), Now: flag(s, "now"),
		}
		w.Payload, _ = readValue(s, "payload")
		if w.Worker == "" {
			s.Missing("worker", "name the worker of the job")
		}
		s.Close()
		e.Submits = append(e.Submits, w)
	}
	for _, d := range t.Tables("defer") {
		w := WantDefer{Method: d.OneOf("method", policy.Methods()...), URL: d.Text("url"), Entry: d.Text("entry"), Header: d.TextTable("header")}
		w.Args, _ = readValue(d, "args")
		w.Body, _ = readValue(d, "body")
		d.Close()
		e.Defers = append(e.Defers, w)
	}
}

func (e *Expect) readReports(t *manifest.Table) {
	for _, m := range t.Tables("metric") {
		w := WantMetric{Name: m.Text("name"), Kind: m.OneOf("kind", slices.Clone(metricKinds[1:])...), Count: m.Whole("count", 0, 1<<62, -1)}
		if v, given := m.Number("value"); given {
			w.Value = &v
		}
		if w.Name == "" {
			m.Missing("name", "the name of the metric, with its labels if it has any")
		}
		m.Close()
		e.Metrics = append(e.Metrics, w)
	}
	for _, s := range t.Tables("state") {
		w := WantState{Tag: s.Text("tag")}
		if s.Has("status") {
			status := s.Whole("status", -1<<31, 1<<31-1, 0)
			w.Status = &status
		}
		if s.Has("message") {
			message := s.Text("message")
			w.Message = &message
		}
		w.Payload, _ = readValue(s, "payload")
		if w.Tag == "" {
			s.Missing("tag", "the tag under which the state is")
		}
		s.Close()
		e.States = append(e.States, w)
	}
}

// anything returns the regular expression for a text in which * matches anything.
func anything(text string) string {
	parts := strings.Split(text, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return "(?s)^" + strings.Join(parts, ".*") + "$"
}

// readValue reads a text, or any other value, which stands for JSON.
func readValue(t *manifest.Table, name string) (*value, bool) {
	if !t.Has(name) {
		return nil, false
	}
	v, err := valueOf(t.Value(name))
	if err != nil {
		t.Fault(name, err)
		return nil, false
	}
	return &v, true
}

func flag(t *manifest.Table, name string) *bool {
	v, given := t.Flag(name)
	if !given {
		return nil
	}
	return &v
}

func priority(t *manifest.Table) string {
	name := t.Text("priority")
	if _, err := jobhost.ParsePriority(name); name != "" && err != nil {
		t.Fault("priority", err)
		return ""
	}
	return name
}
