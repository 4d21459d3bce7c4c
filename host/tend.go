package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost/host/scope"
)

// tend starts what looks after a running host: each in a scope of its own,
// from the start until the host begins to drain, since nothing may begin then
// that a clean stop would have to wait for.
func (h *Host) tend(root *scope.Scope, r *running) error {
	var objects error
	if r.objects != nil {
		r.objects.Calm(r.queue.CalmUntil())
		objects = errors.Join(
			h.tender(root, "payloads", r.objects.Run),
			h.tender(root, "payload stores", r.objects.Watch),
		)
	}
	return errors.Join(
		objects,
		h.tendStates(root),
		h.tender(root, "retention", r.queue.Tidy),
		h.tender(root, "disk", h.watchSpace(r)),
		h.tender(root, "evidence of crashes", h.cfg.Crash.Watch),
		h.tender(root, "timers of workflows", r.flows.Run),
	)
}

func (h *Host) tender(root *scope.Scope, name string, work func(context.Context) error) error {
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
