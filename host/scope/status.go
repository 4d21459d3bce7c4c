package scope

import (
	"cmp"
	"slices"
)

// Status is how a scope is, or how it ended.
type Status uint8

// The statuses. Failure beats cancellation, and OK is known only after the join.
const (
	StatusRunning   Status = iota // not joined yet, and nothing against it
	StatusOK                      // joined, and nothing against it
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

// Report tells how a scope and all below it have ended, or, before its join, how
// they are.
type Report struct {
	ID        uint64 // 0 if the scope was never admitted
	Name      string
	Status    Status
	Primary   error      // the first failure; nil unless failed
	Cancelled *Cancelled // why it was cancelled, by whom or by its own failure; else nil
	Extra     []error    // failures that came too late to be primary
	Children  []Report   // of children that have ended, in the order of attachment
	Omitted   Omitted    // children that have ended and have no report here
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

// Omitted counts children by their outcome.
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

// MaxChildReports is how many children's reports a scope keeps, apart from those
// that it was told to [Forget]. If there are more, those of children that ended
// well go first, oldest first; then new ones aren't kept. All are counted.
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

// Status returns how the scope is.
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

// Report returns how the scope is, or, after its join, how it has ended.
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
