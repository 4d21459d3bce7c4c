package process

import (
	"context"
	"strconv"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// suspects are attempts that were under way when a process died and that may have been why. Such a one
// runs alone the next time, in a process of its own, so that it is known then. The oldest are forgotten.
type suspects struct {
	known map[string]struct{}
	order []string
}

// maxSuspects is how many are remembered.
const maxSuspects = 1000

func suspectKey(at *hostcall.Attempt) string { return at.Job + "/" + strconv.Itoa(at.Task) }

func (s *suspects) add(key string) {
	if _, have := s.known[key]; have {
		return
	}
	if s.known == nil {
		s.known = map[string]struct{}{}
	}
	s.known[key] = struct{}{}
	if s.order = append(s.order, key); len(s.order) > maxSuspects {
		delete(s.known, s.order[0])
		s.order = s.order[1:]
	}
}

// take reports whether an attempt is suspect, and forgets it.
func (c *crew) takeSuspect(at *hostcall.Attempt) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.suspects.known) == 0 {
		return false
	}
	key := suspectKey(at)
	_, have := c.suspects.known[key]
	delete(c.suspects.known, key)
	return have
}

func (c *crew) suspect(at *hostcall.Attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspects.add(suspectKey(at))
}

// enterAlone begins a run in a process of its own, which leave ends. One suspect runs at a time.
func (c *crew) enterAlone(ctx context.Context, r *run) (leave func(), err error) {
	c.alone.Lock()
	child, err := c.start(ctx)
	if err != nil {
		c.alone.Unlock()
		return nil, err
	}
	child.begin(r)
	return func() {
		child.close()
		c.alone.Unlock()
	}, nil
}
