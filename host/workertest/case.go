package workertest

import (
	"cmp"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/netproxy/policy"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// parse parses the text of a case.toml into the case. name is the file name for faults.
// The error is of type [manifest.Faults].
func (c *Case) parse(name string, data []byte) error {
	doc, t := manifest.ReadDocument(name, data)
	t.Text("description") // for people
	c.Skip = t.Text("skip")
	if t.Has("input") {
		if c.Input != nil {
			t.Faultf("input", "keep one of them", "the case has a file for its input already")
		}
		if in, _ := readValue(t, "input"); in != nil {
			c.Input = in.bytes()
		}
	}
	c.readTask(t)
	c.Config, c.Secrets, c.KV = t.TextTable("config"), t.TextTable("secrets"), t.TextTable("kv")
	for key := range c.KV {
		if err := jobhost.CheckKey(key); err != nil {
			t.Fault("kv", err)
		}
	}
	if t.Has("messages") {
		c.Messages = append([]string{}, t.Texts("messages")...)
	}
	c.readStates(t)
	c.readChildren(t)
	for _, m := range t.Tables("http") {
		c.Requests = append(c.Requests, c.readMock(m))
	}
	c.readExpect(t.Table("expect"))
	t.Close()
	return doc.Err()
}

// readTask reads the description of the attempt's task.
func (c *Case) readTask(t *manifest.Table) {
	c.Entry, c.Timeout = t.Text("entry"), t.Duration("timeout", jobhost.MaxTimeout)
	c.Job, c.Trace = cmp.Or(t.Text("job"), "test"), t.Text("trace")
	if err := jobhost.CheckID(c.Job); err != nil {
		t.Fault("job", err)
	}
	c.Tasks = int(t.Whole("tasks", 1, jobhost.MaxTasks, 1))
	c.Task = int(t.Whole("task", 0, jobhost.MaxTasks-1, 0))
	if c.Task >= c.Tasks {
		t.Faultf("task", "tasks count from 0", "there is no task %d of %d", c.Task, c.Tasks)
	}
	c.Attempt = int(t.Whole("attempt", 1, jobhost.MaxAttempts, 1))
	c.Priority, _ = jobhost.ParsePriority(cmp.Or(priority(t), jobhost.Normal.String()))
	c.LogLevel = t.OneOf("log_level", "debug", "info", "warn", "error")
	c.Labels = t.TextTable("labels")
}

func (c *Case) readStates(t *manifest.Table) {
	for _, s := range t.Tables("state") {
		g := GivenState{Worker: s.Text("worker"), TaskState: jobhost.TaskState{
			JobID: cmp.Or(s.Text("job"), c.Job), TaskID: int(s.Whole("task", 0, jobhost.MaxTasks-1, 0)), Tag: s.Text("tag"),
			Status: int32(s.Whole("status", -1<<31, 1<<31-1, 0)), Message: s.Text("message"), Version: 1, Timestamp: stateTime, SchemaVersion: 1,
		}}
		if payload, _ := readValue(s, "payload"); payload != nil {
			g.Payload = payload.bytes()
		}
		if err := g.Check(); err != nil {
			s.Fault("tag", err)
		}
		if g.JobID != c.Job && g.Worker == "" {
			s.Missing("worker", "say of which worker job "+g.JobID+" is")
		}
		s.Close()
		c.States = append(c.States, g)
	}
}

func (c *Case) readChildren(t *manifest.Table) {
	for _, s := range t.Tables("child") {
		g := GivenEnd{Worker: s.Text("worker")}
		if g.Worker == "" {
			s.Missing("worker", "name the worker of the job")
		}
		if result, _ := readValue(s, "result"); result != nil {
			g.Result = string(result.bytes())
		}
		if f := s.Table("fail"); f != nil {
			category := jobhost.Category(cmp.Or(f.Text("category"), string(jobhost.CategoryUnknown)))
			g.Fail = &jobhost.Failure{
				Code: cmp.Or(f.Text("code"), jobhost.FailWorker), Category: category, Severity: jobhost.SeverityError,
				Message: f.Text("message"), Retryable: category.Retryable(), Attempt: 1,
			}
			f.Close()
		}
		s.Close()
		c.Children = append(c.Children, g)
	}
}

// readMock reads a request with its response.
func (c *Case) readMock(t *manifest.Table) *Mock {
	m := &Mock{
		Method: cmp.Or(t.OneOf("method", policy.Methods()...), "GET"), URL: t.Text("url"), Header: t.TextTable("header"), times: 1,
	}
	if m.URL == "" {
		t.Missing("url", "say which URL is asked; * stands for anything")
	} else if err := m.compile(); err != nil {
		t.Fault("url", err)
	}
	m.Body, _ = readValue(t, "body")
	if times := t.Value("times"); times == "any" {
		m.times = -1
	} else if _, text := times.(string); text {
		t.Faultf("times", `write a whole number, or "any"`, "this is not a number of times")
	} else {
		m.times = int(t.Whole("times", 0, maxTimes, 1))
	}
	if r := t.Table("response"); r != nil {
		c.readResponse(m, r)
	} else if !t.Has("response") {
		m.Response.Status = 200
	}
	t.Close()
	return m
}

// maxTimes is the maximum number of times that one mock may answer.
const maxTimes = 100_000

func (c *Case) readResponse(m *Mock, t *manifest.Table) {
	r := &m.Response
	r.Status = int(t.Whole("status", 100, 599, 200))
	r.Header = t.TextTable("header")
	r.Delay = t.Duration("delay", jobhost.MaxDelay)
	r.Error, r.Message = t.OneOf("error", noResponses()...), t.Text("message")
	body, given := readValue(t, "body")
	if given {
		r.Body = body.bytes()
		r.jsonBody = body.isJSON
	}
	if file := t.Text("file"); file != "" {
		if given {
			t.Faultf("file", "keep one of them", "the response has a body already")
		}
		data, err := readFile(c.dir, file)
		if err != nil {
			t.Fault("file", err)
		}
		r.Body = data
	}
	t.Close()
}

// attempt returns the case's part of the attempt; the runner adds the rest.
func (c *Case) attempt() *hostcall.Attempt {
	return &hostcall.Attempt{
		Job: c.Job, Task: c.Task, Tasks: c.Tasks, Number: c.Attempt, Priority: c.Priority, Labels: c.Labels, Trace: c.Trace,
		Entry: c.Entry, Input: c.Input,
	}
}
