package scope

import (
	"context"

	"github.com/jobhost/jobhost/host/op"
)

// Join begins the join of the scope, unless it has begun, waits until it is
// complete, and returns the report. It doesn't cancel: a scope whose goroutines
// don't end on their own must also be cancelled, before or during the join.
//
// Nothing interrupts the join. If ctx ends first, the caller stops waiting and
// gets ctx's cause and the report so far, and the join continues. A goroutine of
// the scope, or of one below it, must not wait for the join: it would wait for
// itself, until ctx ends.
func (s *Scope) Join(ctx context.Context) (Report, error) {
	if ctx.Done() == nil {
		s.joinHere()
		return s.Report(), nil
	}
	s.joinElsewhere()
	if s.done.Fired() {
		return s.Report(), nil
	}
	_, err := op.Perform(ctx, s.done.Wait())
	return s.Report(), err
}

// JoinOp returns Join as an op. Performing it begins the join, whichever arm wins;
// if it loses, the join continues.
func (s *Scope) JoinOp() op.Op[Report] {
	return op.Guard(func() op.Op[Report] {
		s.joinElsewhere()
		return op.Wrap(s.done.Wait(), func(struct{}) (Report, error) { return s.Report(), nil })
	})
}

// joinHere joins in this goroutine, or waits for the one that does.
func (s *Scope) joinHere() {
	if s.beginJoin() {
		s.join()
		return
	}
	if !s.done.Fired() {
		_, _ = op.PerformRaw(s.done.Wait())
	}
}

// joinElsewhere makes sure that the join runs, without waiting for it.
func (s *Scope) joinElsewhere() {
	if !s.beginJoin() {
		return
	}
	if s.empty() {
		s.end()
		return
	}
	go s.join()
}

func (s *Scope) beginJoin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joining {
		return false
	}
	s.joining = true
	s.notifyLocked()
	return true
}

// empty reports whether there is nothing to wait for and nothing to run. After
// beginJoin that is final.
func (s *Scope) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running == 0 && s.first == nil && s.finalisers == nil
}

// join goes through the steps. It is called once, after beginJoin.
func (s *Scope) join() {
	if s.empty() {
		s.end()
		return
	}
	// Deferred, and insisted upon, because a finaliser of this scope or of one
	// below may end this goroutine with runtime.Goexit. Tests do when they fail.
	defer s.end()
	defer insist(s.runFinaliser)
	defer s.seal()
	s.awaitGoroutines()
	insist(s.joinChild)
}

// insist calls step until it reports false, even if one of the calls ends the
// goroutine.
func insist(step func() bool) {
	more := true
	defer func() {
		if more {
			insist(step)
		}
	}()
	for more {
		more = step()
	}
}

func (s *Scope) awaitGoroutines() {
	s.mu.Lock()
	if s.running == 0 {
		s.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	s.idle = idle
	s.mu.Unlock()
	<-idle
}

// joinChild joins the first child that hasn't ended, and reports whether there was
// one.
func (s *Scope) joinChild() bool {
	s.mu.Lock()
	child := s.first
	s.mu.Unlock()
	if child == nil {
		return false
	}
	child.joinHere()
	return true
}

// seal fixes the outcome, except for failures of finalisers: they get the outcome,
// so a late cancellation, with nothing left to stop, must not change it.
func (s *Scope) seal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = true
}

// end announces the outcome: to the parent first, so that after the wait it is in
// the parent's report.
func (s *Scope) end() {
	s.mu.Lock()
	s.sealed, s.ended = true, true
	report := s.reportLocked()
	s.mu.Unlock()
	s.cancelCtx(ended)
	if s.parent != nil {
		s.parent.childEnded(s, report)
	} else {
		s.tree.unhook()
	}
	s.done.Fire()
}
