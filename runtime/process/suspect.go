package process

import (
	"context"
	"slices"
	"strconv"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// suspects are attempts that were in progress when a process died, and may have been the cause. A suspect
// runs alone the next time, in a process of its own, which shows whether it was. The oldest are forgotten.
type suspects struct {
	known map[string]struct{}
	order []string // the keys of known, oldest first
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

func (s *suspects) take(key string) bool {
	if _, have := s.known[key]; !have {
		return false
	}
	delete(s.known, key)
	s.order = slices.DeleteFunc(s.order, func(k string) bool { return k == key })
	return true
}

// takeSuspect reports whether an attempt is a suspect, and removes it from the list.
func (s *supervisor) takeSuspect(at *hostcall.Attempt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.suspects.known) > 0 && s.suspects.take(suspectKey(at))
}

func (s *supervisor) suspect(at *hostcall.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspects.add(suspectKey(at))
}

// enterAlone begins a run in a process of its own, which leave ends. Suspects run one at a time, except for those
// without a deadline, such as fibers: the others can't wait for them.
func (s *supervisor) enterAlone(ctx context.Context, r *run) (leave func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(errClosed) })()
	defer func() {
		if err != nil {
			s.suspect(r.at) // still
		}
	}()
	done := func() {}
	if !r.at.Deadline.IsZero() {
		select {
		case s.alone <- struct{}{}:
			done = func() { <-s.alone }
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	child, err := s.startAlone(ctx)
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

// startAlone starts a process for one run, once the backoff is over.
func (s *supervisor) startAlone(ctx context.Context) (*child, error) {
	if err := s.pause(ctx, false); err != nil {
		return nil, err
	}
	child, err := s.start(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.notStarted(err)
		}
		return nil, err
	}
	s.mu.Lock()
	stopped := s.life.Err() != nil
	if !stopped {
		s.lost = 0
		s.wait.Go(func() { s.watch(child) })
	}
	s.mu.Unlock()
	if stopped {
		child.close()
		return nil, errClosed
	}
	return child, nil
}
