package scope

import (
	"cmp"
	"slices"
)

// Status is the state of a scope, or its outcome.
type Status uint8

// The statuses. Failure takes precedence over cancellation, and OK is known only
// after the join.
const (
	StatusRunning   Status = iota // not joined yet, no problem so far
	StatusOK                      // joined, no problem
	StatusCancelled               // cancelled, perhaps not joined yet
	StatusFailed                  // has a primary error, perhaps not joined yet
)

func (s Status) String() string {
	switch s {
	case StatusRunning:
		return "running"
	case StatusOK:
		return "ok"
	case StatusCancelled:
		return "cancelled"
	case StatusFailed:
		return "failed"
	}
	return "unknown"
}

// Report describes the outcome of a scope and all below it, or, before its join,
// their current state.
type Report struct {
	ID        uint64 // 0 if the scope was never admitted
	Name      string
	Status    Status
	Primary   error      // the first failure; nil unless failed
	Cancelled *Cancelled // why it was cancelled, from outside or by its own failure; nil = it wasn't
	Extra     []error    // failures that came too late to be primary
	Children  []Report   // of children that have ended, in order of attachment
	Omitted   Omitted    // children that have ended without a report here
}

// Err is the outcome as an error: the primary error, the [*Cancelled], or nil.
func (r Report) Err() error {
	switch r.Status {
	case StatusFailed:
		return r.Primary
	case StatusCancelled:
		return r.Cancelled
	default:
		return nil
	}
}

// Omitted counts children by outcome.
type Omitted struct{ OK, Cancelled, Failed int }

func (o *Omitted) count(s Status) {
	switch s {
	case StatusFailed:
		o.Failed++
	case StatusCancelled:
		o.Cancelled++
	default:
		o.OK++
	}
}

// MaxChildReports is how many children's reports a scope keeps, not counting
// those dropped by [Forget]. After that, the report of a child that didn't end
// well replaces the first one of a child that did; other new reports aren't
// kept. All are counted.
const MaxChildReports = 256

func (s *Scope) keepLocked(r Report) {
	if len(s.kept) < MaxChildReports {
		s.kept = append(s.kept, r)
		return
	}
	out := r
	if r.Status != StatusOK {
		if i := slices.IndexFunc(s.kept, func(r Report) bool { return r.Status == StatusOK }); i >= 0 {
			out = s.kept[i]
			s.kept = append(slices.Delete(s.kept, i, i+1), r)
		}
	}
	s.omitted.count(out.Status)
}

// Status returns the state of the scope.
func (s *Scope) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statusLocked()
}

func (s *Scope) statusLocked() Status {
	switch {
	case s.primary != nil:
		return StatusFailed
	case s.cancelled != nil:
		return StatusCancelled
	case s.ended:
		return StatusOK
	default:
		return StatusRunning
	}
}

// Report returns the state of the scope, or, after its join, its outcome.
func (s *Scope) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reportLocked()
}

func (s *Scope) reportLocked() Report {
	r := Report{
		ID: s.id, Name: s.name, Status: s.statusLocked(), Primary: s.primary, Cancelled: s.cancelled,
		Extra: slices.Clone(s.extra), Children: slices.Clone(s.kept), Omitted: s.omitted,
	}
	slices.SortFunc(r.Children, func(a, b Report) int { return cmp.Compare(a.ID, b.ID) })
	return r
}
