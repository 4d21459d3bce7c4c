package main

import (
	"bytes"
	"context"
	"io"

	"github.com/jobhost/jobhost"
)

// Upload keeps the payload as its reference.
func (s *fakeServer) Upload(_ context.Context, r io.Reader) (jobhost.Upload, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return jobhost.Upload{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := "u1." + jobhost.NewID()
	if s.uploads == nil {
		s.uploads = map[string][]byte{}
	}
	s.uploads[ref] = data
	return jobhost.Upload{Ref: ref, Size: int64(len(data))}, nil
}

func (s *fakeServer) OpenPayload(_ context.Context, id string) (jobhost.Content, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, ok := s.jobs[id]
	if !ok {
		return jobhost.Content{}, notFound(id)
	}
	return contentOf(j.spec.Payload), nil
}

func (s *fakeServer) OpenResult(ctx context.Context, id string, task int) (jobhost.Content, error) {
	result, err := s.Result(ctx, id, task)
	return contentOf(result.Data), err
}

func contentOf(data []byte) jobhost.Content {
	return jobhost.Content{ReadCloser: io.NopCloser(bytes.NewReader(data)), Size: int64(len(data))}
}
