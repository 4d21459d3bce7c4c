package main

import (
	"context"
	"errors"
	"time"

	"github.com/jobhost/jobhost"
)

const (
	// startPatience is how long a command that doesn't wait for its job waits for a host that is starting.
	startPatience = 30 * time.Second
	// startPoll is how often it asks, and startNote how often it says what it waits for.
	startPoll = 250 * time.Millisecond
	startNote = 5 * time.Second
)

// probed is a server that can be asked whether it takes jobs.
type probed interface {
	Ready(ctx context.Context) error
}

// awaitStart waits while the host is starting, which takes long while large plugins are compiled,
// for at most a time if that isn't 0. It returns an error only if ctx ends: whatever else keeps
// the host from taking jobs, the next request of the command reports it.
func (e *env) awaitStart(ctx context.Context, server jobhost.Server, most time.Duration) error {
	host, ok := server.(probed)
	if !ok || !isStarting(host.Ready(ctx)) {
		return nil
	}
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, most, errPatience)
		defer cancel()
	}
	poll, note := time.NewTicker(startPoll), time.NewTicker(startNote)
	defer poll.Stop()
	defer note.Stop()
	e.noteStart(ctx, server)
	for {
		select {
		case <-note.C:
			e.noteStart(ctx, server)
		case <-poll.C:
			if !isStarting(host.Ready(ctx)) {
				return nil
			}
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errPatience) {
				return nil
			}
			return context.Cause(ctx)
		}
	}
}

// noteStart says what the host is waiting for. The probe doesn't, since it needs no token.
func (e *env) noteStart(ctx context.Context, server jobhost.Server) {
	if _, err := server.Workers(ctx); isStarting(err) {
		e.note("%v; waiting for it", err)
	}
}

func isStarting(err error) bool {
	fault, ok := errors.AsType[*jobhost.Error](err)
	return ok && fault.Code == jobhost.CodeUnavailable && fault.Field == jobhost.FieldStart
}

// forStart is how long a command waits for the host to start: as long as for its job.
func (p *waitFlag) forStart() time.Duration {
	if p.given {
		return time.Duration(p.most)
	}
	return startPatience
}
