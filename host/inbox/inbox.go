// Package inbox submits the jobs that other programs have put into the store's database, in transactions of their own.
package inbox

import (
	"context"
	"log/slog"
	"time"

	"github.com/jobhost/jobhost/host/api/wire"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/text"
)

// Queue is the part of a queue that takes jobs.
type Queue interface {
	SubmitIncoming(ctx context.Context, jobs []queue.Incoming, refused func(queue.Incoming, error)) (full []string, err error)
}

// How often the inbox is looked into: a job waits for at most as long. There is no notification: NOTIFY takes a lock on
// the whole server.
const (
	lookEvery = 100 * time.Millisecond
	fullEvery = time.Second // for a worker whose queue has no room
	most      = 1000        // jobs of a look
)

// Inbox is an inbox with the queue that its jobs go to.
type Inbox struct {
	Store      record.Inbox
	Queue      Queue
	MaxPayload int
	Logger     *slog.Logger
}

// Run submits jobs until ctx ends.
func (b *Inbox) Run(ctx context.Context) error {
	l := looker{Inbox: b, decoder: wire.NewDecoder(b.MaxPayload)}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		timer.Reset(l.look(ctx))
	}
}

// looker looks into an inbox again and again.
type looker struct {
	*Inbox
	decoder *wire.Decoder

	full  []string  // workers without room: others' jobs must not wait behind theirs
	until time.Time // when they are tried again
}

// look submits what is there, and returns when to look again.
func (l *looker) look(ctx context.Context) time.Duration {
	if now := time.Now(); now.After(l.until) {
		l.full, l.until = nil, now.Add(fullEvery)
	}
	for {
		jobs, err := l.Store.Incoming(ctx, most, l.full)
		var full []string
		if err == nil && len(jobs) > 0 {
			full, err = l.Queue.SubmitIncoming(ctx, decode(l.decoder, jobs), l.refused)
		}
		l.full = append(l.full, full...)
		switch {
		case ctx.Err() != nil:
			return fullEvery
		case err != nil:
			l.Logger.Warn("submit jobs of the database's inbox", logkey.Error, err)
			return fullEvery
		case len(full) == 0 && len(jobs) < most:
			return lookEvery
		}
	}
}

// shown is how much of what a program said is logged.
const shown = 200

func (l *looker) refused(in queue.Incoming, reason error) {
	l.Logger.Warn("a job that was submitted within the database is refused", logkey.Job, text.Clip(in.Spec.ID, shown),
		logkey.Worker, text.Clip(in.Spec.Worker, shown), logkey.Error, reason)
}

// decode reads the jobs as the API does.
func decode(d *wire.Decoder, jobs []record.Incoming) []queue.Incoming {
	list := make([]queue.Incoming, len(jobs))
	for i, in := range jobs {
		spec, err := d.Decode(in.Body)
		spec.ID, spec.Payload = in.ID, in.Payload
		list[i] = queue.Incoming{Number: in.Number, Spec: spec, Invalid: err}
	}
	return list
}
