package hosttest

import (
	"bytes"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
)

func testSubmit(s *setup) {
	receipt, err := s.server.Submit(s.ctx, later())
	s.check(err)
	if jobhost.CheckID(receipt.ID) != nil || receipt.State != jobhost.Scheduled || receipt.Deduplicated {
		s.Errorf("got receipt %+v, want an id, scheduled, not deduplicated", receipt)
	}
	if job := s.job(receipt.ID); job.ID != receipt.ID || job.Worker != "test" || job.PayloadSize != len("later") {
		s.Errorf("got job %+v", job)
	}
}

func testSubmitAgain(s *setup) {
	first := later()
	first.ID, first.Labels = "again", map[string]string{"a": "b"}
	s.submit(first)
	receipt, err := s.server.Submit(s.ctx, first)
	s.check(err)
	if receipt.ID != "again" || !receipt.Deduplicated {
		s.Errorf("the same again: got %+v, want it deduplicated", receipt)
	}
	others := map[string]func(*jobhost.Spec){
		"payload":  func(s *jobhost.Spec) { s.Payload = []byte("other") },
		"entry":    func(s *jobhost.Spec) { s.Entry = "empty" },
		"priority": func(s *jobhost.Spec) { s.Priority = jobhost.High },
		"labels":   func(s *jobhost.Spec) { s.Labels = nil },
		"tasks":    func(s *jobhost.Spec) { s.Tasks = 2 },
		"delay":    func(s *jobhost.Spec) { s.Delay = time.Minute },
	}
	for name, change := range others {
		other := first
		change(&other)
		_, err := s.server.Submit(s.ctx, other)
		s.Log("other", name)
		s.wantCode(err, jobhost.CodeConflict)
	}
	// An ended job is still the same job.
	ended := spec("echo", "x")
	ended.ID = "ended"
	s.finish(ended)
	receipt, err = s.server.Submit(s.ctx, ended)
	s.check(err)
	if !receipt.Deduplicated || receipt.State != jobhost.Succeeded {
		s.Errorf("an ended job again: got %+v, want it deduplicated and succeeded", receipt)
	}
}

func testSubmitRefused(s *setup) {
	tests := []struct {
		name   string
		change func(*jobhost.Spec)
		code   jobhost.Code
	}{
		{"unknown worker", func(s *jobhost.Spec) { s.Worker = "nobody" }, jobhost.CodeNotFound},
		{"no worker", func(s *jobhost.Spec) { s.Worker = "" }, jobhost.CodeInvalid},
		{"bad worker", func(s *jobhost.Spec) { s.Worker = "../x" }, jobhost.CodeInvalid},
		{"bad id", func(s *jobhost.Spec) { s.ID = "a/b" }, jobhost.CodeInvalid},
		{"id with NUL", func(s *jobhost.Spec) { s.ID = "a\x00" }, jobhost.CodeInvalid},
		{"negative tasks", func(s *jobhost.Spec) { s.Tasks = -1 }, jobhost.CodeInvalid},
		{"too many tasks", func(s *jobhost.Spec) { s.Tasks = jobhost.MaxTasks + 1 }, jobhost.CodeInvalid},
		{"negative delay", func(s *jobhost.Spec) { s.Delay = -time.Second }, jobhost.CodeInvalid},
		{"delay and time", func(s *jobhost.Spec) { s.Delay, s.RunAt = 1, time.Now() }, jobhost.CodeInvalid},
		{"label without name", func(s *jobhost.Spec) { s.Labels = map[string]string{"": "x"} }, jobhost.CodeInvalid},
		{"control character", func(s *jobhost.Spec) { s.Entry = "a\nb" }, jobhost.CodeInvalid},
		{"huge payload", func(s *jobhost.Spec) { s.Payload = make([]byte, 2<<20) }, jobhost.CodeTooLarge},
	}
	for _, test := range tests {
		bad := later()
		test.change(&bad)
		_, err := s.server.Submit(s.ctx, bad)
		s.Log(test.name)
		s.wantCode(err, test.code)
	}
	page, err := s.server.Jobs(s.ctx, jobhost.Filter{})
	s.check(err)
	if len(page.Jobs) != 0 {
		s.Errorf("refused jobs are there: %+v", page.Jobs)
	}
}

func testSubmitOptions(s *setup) {
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	want := jobhost.Spec{
		ID: "all.options_1-A", Worker: "test", Payload: []byte("\xff\x00\"\\"), ContentType: "application/x-thing",
		Entry: "echo", Priority: jobhost.Background, RunAt: at, Tasks: 2, MaxAttempts: 7,
		Timeout: 1500 * time.Millisecond, Labels: map[string]string{"größe": "<b>\u2028", "b": ""}, ConcurrencyKey: "kunde é",
	}
	job := s.job(s.submit(want))
	switch {
	case job.ID != want.ID || job.ContentType != want.ContentType || job.Entry != want.Entry || job.PayloadSize != len(want.Payload):
		s.Errorf("got %+v, want %+v", job, want)
	case job.Priority != want.Priority || job.MaxAttempts != 7 || time.Duration(job.Timeout) != want.Timeout:
		s.Errorf("got %+v, want %+v", job, want)
	case job.ConcurrencyKey != want.ConcurrencyKey:
		s.Errorf("got concurrency key %q, want %q", job.ConcurrencyKey, want.ConcurrencyKey)
	case !maps.Equal(job.Labels, want.Labels):
		s.Errorf("got labels %q, want %q", job.Labels, want.Labels)
	case job.TaskCount != 2 || len(job.Tasks) != 2 || !job.Tasks[1].ReadyAt.Equal(at):
		s.Errorf("got tasks %+v, want 2 at %v", job.Tasks, at)
	case job.EndedAt != nil || time.Since(job.CreatedAt).Abs() > time.Minute:
		s.Errorf("got times %v, %v", job.CreatedAt, job.EndedAt)
	}
	s.wantState(job, jobhost.Scheduled)
}

// testSubmitAtOnce submits one id many times at once: it must become one job.
func testSubmitAtOnce(s *setup) {
	const submits = 50
	one := later()
	one.ID = "one"
	var group sync.WaitGroup
	receipts, errs := make([]jobhost.Receipt, submits), make([]error, submits)
	for i := range submits {
		group.Go(func() { receipts[i], errs[i] = s.server.Submit(s.ctx, one) })
	}
	group.Wait()
	fresh := 0
	for i := range submits {
		s.check(errs[i])
		if !receipts[i].Deduplicated {
			fresh++
		}
	}
	page, err := s.server.Jobs(s.ctx, jobhost.Filter{})
	s.check(err)
	if fresh != 1 || len(page.Jobs) != 1 {
		s.Errorf("%d submits made a job, and there are %d; want one", fresh, len(page.Jobs))
	}
}

func testBatch(s *setup) {
	none, err := s.server.SubmitBatch(s.ctx, nil)
	s.check(err)
	if len(none) != 0 {
		s.Errorf("an empty batch has %d answers", len(none))
	}
	named := later()
	named.ID = "named"
	other := named
	other.Payload = []byte("other")
	wrong := later()
	wrong.Worker = "nobody"
	bad := later()
	bad.Tasks = -1
	specs := []jobhost.Spec{spec("echo", "first"), wrong, named, named, other, bad, spec("echo", "\xff\xfe"), spec("empty", "")}
	codes := []jobhost.Code{"", jobhost.CodeNotFound, "", "", jobhost.CodeConflict, jobhost.CodeInvalid, "", ""}
	answers, err := s.server.SubmitBatch(s.ctx, specs)
	s.check(err)
	if len(answers) != len(specs) {
		s.Fatalf("got %d answers to %d jobs", len(answers), len(specs))
	}
	for i, answer := range answers {
		s.Logf("job %d: %+v", i, answer)
		if codes[i] != "" {
			s.wantCode(answer.Err, codes[i])
			continue
		}
		s.check(answer.Err)
		if want := i == 3; answer.Receipt.Deduplicated != want || answer.Receipt.ID == "" {
			s.Errorf("got %+v, want deduplicated %v", answer.Receipt, want)
		}
	}
	s.wantState(s.wait(answers[0].Receipt.ID), jobhost.Succeeded)
	s.wait(answers[6].Receipt.ID)
	s.wantResult(answers[0].Receipt.ID, 0, []byte("first"))
	s.wantResult(answers[6].Receipt.ID, 0, []byte("\xff\xfe"))
	s.largeBatch()
}

// largeBatch submits more than goes to a store at once.
func (s *setup) largeBatch() {
	specs := make([]jobhost.Spec, 60)
	for i := range specs {
		specs[i] = spec("echo", fmt.Sprint("job ", i))
		specs[i].Payload = append(specs[i].Payload, bytes.Repeat([]byte{'.'}, 8000)...)
	}
	answers, err := s.server.SubmitBatch(s.ctx, specs)
	s.check(err)
	for i, answer := range answers {
		s.check(answer.Err)
		s.wantState(s.wait(answer.Receipt.ID), jobhost.Succeeded)
		s.wantResult(answer.Receipt.ID, 0, specs[i].Payload)
	}
}
