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
)

// Queue is the part of a queue that takes jobs.
type Queue interface {
	SubmitIncoming(ctx context.Context, jobs []queue.Incoming, refused func(queue.Incoming, error)) (full []string, err error)
}

// How often the inbox is looked into: a job waits for at most as long. There is no notification: NOTIFY takes a lock on
// the whole server.
const (
	lookEvery = 100 * time.Millisecond
	fullEvery = time.Second // while the queues have no room for what is there
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
	decoder := wire.NewDecoder(b.MaxPayload)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		timer.Reset(b.look(ctx, decoder))
	}
}

// look submits what is there, and returns when to look again. Jobs for workers that have no room stay, and those for others
// are looked for behind them: there may be any number of them.
func (b *Inbox) look(ctx context.Context, decoder *wire.Decoder) time.Duration {
	var full []string
	for ctx.Err() == nil {
		jobs, err := b.Store.Incoming(ctx, most, full)
		var more []string
		if err == nil && len(jobs) > 0 {
			more, err = b.Queue.SubmitIncoming(ctx, decode(decoder, jobs), func(in queue.Incoming, reason error) {
				b.Logger.Warn("a job that was submitted within the database is refused", logkey.Job, in.Spec.ID, logkey.Worker, in.Spec.Worker, logkey.Error, reason)
			})
		}
		if err != nil && ctx.Err() == nil {
			b.Logger.Warn("submit jobs of the database's inbox", logkey.Error, err)
			return fullEvery
		}
		if full = append(full, more...); len(more) == 0 && len(jobs) < most {
			break
		}
	}
	if len(full) > 0 {
		return fullEvery
	}
	return lookEvery
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
