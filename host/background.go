package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost/host/scope"
)

// startUpkeep starts what a running host does in the background: each part in a scope of its
// own, from the start until the host begins to drain, since a clean stop would have to wait for
// whatever began then.
func (h *Host) startUpkeep(root *scope.Scope, r *running) error {
	var objects error
	if r.objects != nil {
		r.objects.Calm(r.Queue.CalmUntil())
		objects = errors.Join(
			h.startBackground(root, "payloads", r.objects.Run),
			h.startBackground(root, "payload stores", r.objects.Watch),
		)
	}
	return errors.Join(
		objects,
		h.startStatesUpkeep(root),
		h.startBackground(root, "retention", r.Queue.Tidy),
		h.startBackground(root, "disk", h.watchSpace(r)),
		h.startBackground(root, "evidence of crashes", h.cfg.Crash.Watch),
		h.startBackground(root, "timers of workflows", r.Engine.Run),
	)
}

// startBackground runs work in a scope of its own until the host begins to drain.
func (h *Host) startBackground(root *scope.Scope, name string, work func(context.Context) error) error {
	child, err := root.Child(name)
	if err == nil {
		h.watch(child)
		err = child.Go("", func(context.Context) error { return work(h.leaving) })
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	return nil
}
