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

// enterAlone begins a run in a process of its own, which leave ends. One suspect runs at a time, but for those that have
// no deadline, such as fibers: the others can't wait for them.
func (c *crew) enterAlone(ctx context.Context, r *run) (leave func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(errDismissed) })()
	defer func() {
		if err != nil {
			c.suspect(r.at) // still
		}
	}()
	done := func() {}
	if !r.at.Deadline.IsZero() {
		select {
		case c.alone <- struct{}{}:
			done = func() { <-c.alone }
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	child, err := c.startAlone(ctx)
	if err == nil && !child.begin(r) {
		child.close()
		err = errEnded
	}
	if err != nil {
		done()
		return nil, err
	}
	return func() {
		child.close()
		done()
	}, nil
}

// startAlone starts a process for one run, when it is time.
func (c *crew) startAlone(ctx context.Context) (*child, error) {
	if err := c.pause(ctx, false); err != nil {
		return nil, err
	}
	child, err := c.start(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.notStarted(err)
		}
		return nil, err
	}
	c.mu.Lock()
	dismissed := c.life.Err() != nil
	if !dismissed {
		c.lost = 0
		c.wait.Go(func() { c.watch(child) })
	}
	c.mu.Unlock()
	if dismissed {
		child.close()
		return nil, errDismissed
	}
	return child, nil
}
