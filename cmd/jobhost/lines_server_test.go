package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/jobhost/jobhost"
)

// linesServer takes lines and counts their words. It is no host: tests of lines say in which
// order jobs end and when there is room, some in bubbles of synctest, where guests can't run.
type linesServer struct {
	jobhost.Server // for all other methods, which are not called

	// onBatch and onWait are called first; nil = nothing is. The answers of onBatch hold,
	// if there are any.
	onBatch func(specs []jobhost.Spec) ([]jobhost.Submitted, error)
	onWait  func(ctx context.Context, payload string)

	mu       sync.Mutex // protects payloads
	payloads []string   // of job-0, job-1 and so on
}

func (s *linesServer) submitted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.payloads)
}

func (s *linesServer) take(spec *jobhost.Spec) jobhost.Receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.payloads = append(s.payloads, string(spec.Payload))
	return jobhost.Receipt{ID: fmt.Sprint("job-", len(s.payloads)-1), State: jobhost.Ready}
}

func (s *linesServer) payload(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var i int
	_, _ = fmt.Sscanf(id, "job-%d", &i)
	return s.payloads[i]
}

func (s *linesServer) SubmitBatch(_ context.Context, specs []jobhost.Spec) ([]jobhost.Submitted, error) {
	if s.onBatch != nil {
		if answers, err := s.onBatch(specs); answers != nil || err != nil {
			return answers, err
		}
	}
	answers := make([]jobhost.Submitted, len(specs))
	for i := range specs {
		answers[i].Receipt = s.take(&specs[i])
	}
	return answers, nil
}

func (s *linesServer) Wait(ctx context.Context, id string) (jobhost.Job, error) {
	if s.onWait != nil {
		s.onWait(ctx, s.payload(id))
	}
	if err := context.Cause(ctx); err != nil {
		return jobhost.Job{ID: id}, err
	}
	return jobhost.Job{ID: id, State: jobhost.Succeeded, TaskCount: 1, Tasks: []jobhost.Task{{State: jobhost.Succeeded}}}, nil
}

func (s *linesServer) Result(_ context.Context, id string, _ int) (jobhost.Result, error) {
	return jobhost.Result{Data: fmt.Appendf(nil, "%d words", len(strings.Fields(s.payload(id))))}, nil
}
