package runtimetest

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Board is [Network] plus the states of jobs and the inbox of a fiber.
type Board struct {
	Network
	// Workers maps the other existing jobs to their workers.
	Workers map[string]string
	// Fails is the error of all calls; may be nil.
	Fails error
	// Sent is the inbox of a fiber; nil = the attempt is not a fiber's.
	Sent *Stream
	// Reported is called when a state was set; may be nil.
	Reported func()

	mu      sync.Mutex // protects the rest
	set     []jobhost.TaskState
	asked   []hostcall.StateQuery
	watched []*Stream
}

// Set returns the states that were set, in order.
func (b *Board) Set() []jobhost.TaskState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.set)
}

// Asked returns the queries, in order.
func (b *Board) Asked() []hostcall.StateQuery {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

// Watched returns the stream of the n-th watch, from 0.
func (b *Board) Watched(n int) *Stream {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.watched[n]
}

// SetState implements [hostcall.States]. The streams of all watches are notified.
func (b *Board) SetState(ctx context.Context, _ *hostcall.Attempt, s jobhost.TaskState) error {
	if err := cmp.Or(ctx.Err(), b.Fails); err != nil {
		return err
	}
	if b.Reported != nil {
		defer b.Reported()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Version = int64(len(b.set)) + 1
	b.set = append(b.set, s)
	for _, w := range b.watched {
		w.Send(textOf(jobhost.StateEvent{State: s}))
	}
	return nil
}

func textOf(e jobhost.StateEvent) string {
	text, err := json.Marshal(&e)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// State implements [hostcall.States]: it is the last one that was set.
func (b *Board) State(ctx context.Context, _ *hostcall.Attempt, q hostcall.StateQuery) (jobhost.TaskState, error) {
	if err := cmp.Or(ctx.Err(), b.Fails); err != nil {
		return jobhost.TaskState{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, q)
	if len(b.set) == 0 || q.Job != "" {
		return jobhost.TaskState{JobID: q.Job, TaskID: max(q.Task, 0), Tag: q.Tag}, nil
	}
	return b.set[len(b.set)-1], nil
}

// WatchState implements [hostcall.States].
func (b *Board) WatchState(ctx context.Context, _ *hostcall.Attempt, q hostcall.StateQuery) (hostcall.Stream, error) {
	if err := cmp.Or(ctx.Err(), b.Fails); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, q)
	s := NewStream()
	for i := range b.set {
		s.Send(textOf(jobhost.StateEvent{State: b.set[i], Replay: true}))
	}
	s.Send(textOf(jobhost.StateEvent{Replay: true, Sentinel: true}))
	b.watched = append(b.watched, s)
	return s, nil
}

// WorkerOf implements [hostcall.States].
func (b *Board) WorkerOf(ctx context.Context, job string) (string, error) {
	if err := cmp.Or(ctx.Err(), b.Fails); err != nil {
		return "", err
	}
	worker, ok := b.Workers[job]
	if !ok {
		return "", &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no job " + strconv.Quote(job)}
	}
	return worker, nil
}

// Receive implements [hostcall.Inbox].
func (b *Board) Receive(*hostcall.Attempt) hostcall.Stream {
	if b.Sent == nil {
		return nil
	}
	return b.Sent
}

// Stream is a [hostcall.Stream] that a test fills. It is safe for concurrent use.
type Stream struct {
	mu       sync.Mutex // protects the rest
	messages []string
	end      error
	changed  chan struct{} // closed and replaced with each change
	dropped  bool
}

// NewStream returns a stream of messages.
func NewStream(messages ...string) *Stream {
	return &Stream{messages: messages, changed: make(chan struct{})}
}

// Send adds a message.
func (s *Stream) Send(message string) {
	s.change(func() { s.messages = append(s.messages, message) })
}

// End says why there will be no more messages.
func (s *Stream) End(reason error) { s.change(func() { s.end = reason }) }

func (s *Stream) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Dropped reports whether it was dropped.
func (s *Stream) Dropped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Drop implements [hostcall.Pending].
func (s *Stream) Drop() { s.change(func() { s.dropped = true }) }

// Next implements [hostcall.Stream].
func (s *Stream) Next() ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.messages) == 0 {
		return nil, false, s.end
	}
	message := s.messages[0]
	s.messages = s.messages[1:]
	return []byte(message), true, nil
}

func (s *Stream) look() (bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.messages) > 0 || s.end != nil, s.changed
}
