package host

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/host/fiberguest"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime"
)

// Fibers bounds the fibers of a host; zero values are the defaults of [fiber.Config].
type Fibers struct {
	// Max is how many live at one time; 0 = 10. Each has a sandbox of its own, up to
	// its worker's memory, which counts for nothing else.
	Max int
	// FailWhenFull answers a start over Max as exhausted, rather than let it wait.
	FailWhenFull bool
	// InputMessages and InputBytes bound what waits for one fiber; 0 = 64 and 4 MiB.
	InputMessages, InputBytes int
	// Replay is how many outputs of a fiber are remembered; 0 = 64, below 0 = none.
	Replay int
	// History is how many ended fibers can still be read; 0 = 1000.
	History int
	// Start are those that start with the host; each id once, their workers among
	// [Config.Workers].
	Start []jobhost.FiberSpec
}

// checkFibers looks at the fibers of the configuration, of which the workers are known.
func (c *Config) checkFibers(workers map[string]bool) error {
	var errs []error
	if c.Fibers.Max < 0 || c.Fibers.Max > jobhost.MaxFibers {
		errs = append(errs, fmt.Errorf("fibers: there can't be %d at one time", c.Fibers.Max))
	}
	seen := map[string]bool{}
	for i := range c.Fibers.Start {
		f := &c.Fibers.Start[i]
		err := f.Check()
		switch {
		case err != nil:
		case seen[f.ID]:
			err = errors.New("it is there twice")
		case !workers[f.Worker]:
			err = fmt.Errorf("there is no worker %s", f.Worker)
		}
		seen[f.ID] = true
		if err != nil {
			errs = append(errs, fmt.Errorf("fiber %s: %w", f.ID, err))
		}
	}
	most := c.Fibers.Max
	if most == 0 {
		most = fiber.DefaultMax
	}
	if len(seen) > most {
		errs = append(errs, fmt.Errorf("%d fibers start with the host, and %d may live at one time", len(seen), most))
	}
	return errors.Join(errs...)
}

// newFibers returns the registry of fibers, in a scope of its own.
func (h *Host) newFibers(root *scope.Scope) (*fiber.Registry, error) {
	child, err := root.Child("fibers")
	if err != nil {
		return nil, fmt.Errorf("start fibers: %w", err)
	}
	h.watch(child)
	f := &h.cfg.Fibers
	return fiber.New(fiber.Config{
		Scope: child, Max: f.Max, FailWhenFull: f.FailWhenFull, InputMessages: f.InputMessages, InputBytes: f.InputBytes,
		Replay: f.Replay, History: f.History, Grace: h.cfg.CancelGrace, Observe: h.cfg.Metrics.Fibers(), Logger: h.cfg.Logger,
	})
}

// fiberStart is the start of a fiber that starts with the host. It may have to wait
// for the end of one of its id, or for a permit.
type fiberStart struct {
	cancel context.CancelFunc
	over   chan struct{} // closed when the fiber runs, or won't
}

// startFibers starts those that start with the host. Nobody waits for them.
func (r *running) startFibers(specs []jobhost.FiberSpec) error {
	h := r.host
	for i := range specs {
		spec := specs[i]
		ctx, cancel := context.WithCancel(h.leaving)
		start := fiberStart{cancel: cancel, over: make(chan struct{})}
		err := r.root.Go("start fiber "+spec.ID, func(context.Context) error {
			defer close(start.over)
			defer cancel()
			if _, err := r.StartFiber(ctx, spec); err != nil && ctx.Err() == nil {
				h.cfg.Logger.Error("fiber does not start", logkey.Fiber, spec.ID, logkey.Worker, spec.Worker, logkey.Error, err)
			}
			return nil
		})
		if err != nil {
			cancel()
			return fmt.Errorf("start fiber %s: %w", spec.ID, err)
		}
		h.fiberStarts[spec.ID] = start
	}
	return nil
}

// endFiber ends a fiber that has started with the host, or that waits to start.
func (r *running) endFiber(id string) {
	h := r.host
	if start, ok := h.fiberStarts[id]; ok {
		start.cancel()
		<-start.over
		delete(h.fiberStarts, id)
	}
	_, _ = r.InterruptFiber(context.Background(), id) // it may have ended long ago
}

// setFibers goes over to other fibers that start with the host, after a reload:
// those that are no longer named end, those that are new begin, and those that are
// named otherwise do both. What else runs goes on.
func (r *running) setFibers(specs []jobhost.FiberSpec) error {
	h := r.host
	named := map[string]jobhost.FiberSpec{}
	for i := range specs {
		named[specs[i].ID] = specs[i]
	}
	var begin []jobhost.FiberSpec
	for i := range h.cfg.Fibers.Start {
		old := &h.cfg.Fibers.Start[i]
		spec, stays := named[old.ID]
		if stays && reflect.DeepEqual(spec, *old) {
			delete(named, old.ID)
			continue
		}
		r.endFiber(old.ID)
	}
	for i := range specs {
		if _, ok := named[specs[i].ID]; ok {
			begin = append(begin, specs[i])
		}
	}
	h.cfg.Fibers.Start = specs
	return r.startFibers(begin)
}

// endFibersOf ends the fibers of a worker that was removed.
func (r *running) endFibersOf(worker string) {
	filter := jobhost.FiberFilter{Worker: worker, Limit: jobhost.MaxPage}
	for {
		page, err := r.Fibers(context.Background(), filter)
		if err != nil {
			return
		}
		for i := range page.Fibers {
			_, _ = r.InterruptFiber(context.Background(), page.Fibers[i].ID)
		}
		if filter.Cursor = page.Next; filter.Cursor == "" {
			return
		}
	}
}

// StartFiber implements [jobhost.FiberRunner].
func (r *running) StartFiber(ctx context.Context, spec jobhost.FiberSpec) (jobhost.Fiber, error) {
	if err := spec.Check(); err != nil {
		return jobhost.Fiber{}, err
	}
	w := r.workers()[spec.Worker]
	if w == nil || w.cfg.own() {
		return jobhost.Fiber{}, &jobhost.Error{
			Code: jobhost.CodeNotFound, Field: "worker", Message: fmt.Sprintf("there is no worker %q", spec.Worker),
		}
	}
	if reason := r.host.held.reason(w.cfg); reason != "" { // then its ABI may not be known
		return jobhost.Fiber{}, &jobhost.Error{
			Code: jobhost.CodeUnavailable, Field: "worker", Message: fmt.Sprintf("worker %s is held: %s", spec.Worker, reason),
			Hint: "jobhost worker resume " + spec.Worker,
		}
	}
	if w.info.ABI != runtime.ABIJobhost {
		return jobhost.Fiber{}, &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "worker", Message: fmt.Sprintf("worker %s can't be a fiber: only plugins of the native ABI can", spec.Worker),
			Hint: "its ABI is " + w.info.ABI + ", which has no call for what a fiber is sent",
		}
	}
	return r.Registry.Start(ctx, spec, fiberguest.Body(r.guestOf(w)), nil)
}

// guestOf is what the guests of a worker's fibers work with. A fiber that is
// restarted finds the version of that moment.
func (r *running) guestOf(w *worker) fiberguest.Config {
	h := r.host
	return fiberguest.Config{
		Acquire: w.pool.Acquire, Queue: r.Queue, Services: &services{host: h, guest: w.metrics.Guest(), now: r.Now},
		Jobs: r, States: h.states, Ran: w.metrics.Ran, Logger: h.cfg.Logger,
		Journal: h.cfg.Journal, Apart: h.isSuspectFiber,
	}
}
