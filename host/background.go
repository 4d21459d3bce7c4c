package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost/host/inbox"
	"github.com/jobhost/jobhost/host/queue/record"
)

// startUpkeep starts what a running host does in the background: each part in a scope of its
// own, from the start until the host begins to drain, since a clean stop would have to wait for
// whatever began then.
func (r *running) startUpkeep() error {
	var objects error
	if r.objects != nil {
		r.objects.Calm(r.Queue.CalmUntil())
		objects = errors.Join(
			r.startBackground("payloads", r.objects.Run),
			r.startBackground("payload stores", r.objects.Watch),
		)
	}
	var incoming error
	if store, ok := r.host.cfg.Store.(record.Inbox); ok {
		jobs := &inbox.Inbox{Store: store, Queue: r.Queue, MaxPayload: r.host.cfg.MaxPayload, Logger: r.host.cfg.Logger}
		incoming = r.startBackground("inbox", jobs.Run)
	}
	return errors.Join(
		objects, incoming,
		r.startStatesUpkeep(),
		r.startBackground("retention", r.Queue.Tidy),
		r.startBackground("disk", r.watchSpace),
		r.startBackground("evidence of crashes", r.host.cfg.Crash.Watch),
		r.startBackground("timers of workflows", r.Engine.Run),
	)
}

// startBackground runs work in a scope of its own until the host begins to drain.
func (r *running) startBackground(name string, work func(context.Context) error) error {
	child, err := r.root.Child(name)
	if err == nil {
		r.host.watch(child)
		err = child.Go("", func(context.Context) error { return work(r.host.leaving) })
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	return nil
}
