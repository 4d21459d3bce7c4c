package fiber

import (
	"cmp"
	"context"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/op"
)

// find returns the running fiber with an id, or else the last one that ended,
// or neither.
func (r *Registry) find(id string) (*Fiber, *jobhost.Fiber) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if f := r.live[id]; f != nil {
		return f, nil
	}
	return nil, r.past.get(id)
}

// Fiber returns the description of a fiber. The labels and result of a returned
// fiber must never be changed.
func (r *Registry) Fiber(_ context.Context, id string) (jobhost.Fiber, error) {
	f, end := r.find(id)
	switch {
	case f != nil:
		return f.now(), nil
	case end != nil:
		return *end, nil
	}
	return jobhost.Fiber{}, errNotFound(id)
}

// Wait waits for the end of a fiber and returns its outcome. If ctx ends first,
// its cause is the error.
func (r *Registry) Wait(ctx context.Context, id string) (jobhost.Fiber, error) {
	f, end := r.find(id)
	switch {
	case f == nil && end == nil:
		return jobhost.Fiber{}, errNotFound(id)
	case f == nil:
		return *end, nil
	}
	end, err := op.Perform(ctx, f.ended.Get())
	if err != nil {
		return f.now(), err
	}
	return *end, nil
}

// Fibers returns a page of fibers ordered by id, including those that have ended
// and are remembered, without their results.
func (r *Registry) Fibers(_ context.Context, filter jobhost.FiberFilter) (jobhost.FiberPage, error) {
	if err := filter.Check(); err != nil {
		return jobhost.FiberPage{}, err
	}
	limit := cmp.Or(filter.Limit, 50)
	p := page{filter: filter, most: limit + 1} // one more shows whether there is a next page
	r.mu.RLock()
	for id, f := range r.live {
		if p.mayHold(id, f.spec.Worker) {
			p.add(f.now())
		}
	}
	for id, e := range r.past.byID {
		if r.live[id] == nil {
			if end := e.Value.(*jobhost.Fiber); p.mayHold(id, end.Worker) {
				p.add(*end)
			}
		}
	}
	r.mu.RUnlock()
	p.cut()
	found := jobhost.FiberPage{Fibers: p.fibers}
	if len(p.fibers) > limit {
		found.Fibers = p.fibers[:limit]
		found.Next = p.fibers[limit-1].ID
	}
	return found, nil
}

// page collects the first fibers, by id, that a filter selects, without ever
// holding many more than that.
type page struct {
	filter jobhost.FiberFilter
	most   int
	fibers []jobhost.Fiber
	below  string // when set, ids from this one on are not among the first
}

// mayHold reports whether a fiber may belong to the page, judging by its id and
// worker.
func (p *page) mayHold(id, worker string) bool {
	return id > p.filter.Cursor && (p.below == "" || id < p.below) && (p.filter.Worker == "" || worker == p.filter.Worker)
}

func (p *page) add(f jobhost.Fiber) {
	if p.filter.Status != "" && f.Status != p.filter.Status {
		return
	}
	f.Result = nil
	if p.fibers = append(p.fibers, f); len(p.fibers) >= 2*p.most {
		p.cut()
	}
}

// cut sorts the fibers and keeps the first ones.
func (p *page) cut() {
	slices.SortFunc(p.fibers, func(a, b jobhost.Fiber) int { return cmp.Compare(a.ID, b.ID) })
	if len(p.fibers) >= p.most {
		clear(p.fibers[p.most:])
		p.fibers = p.fibers[:p.most]
		p.below = p.fibers[p.most-1].ID
	}
}
