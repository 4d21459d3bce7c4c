package process

import (
	"context"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
)

// A plugin is disabled after this many failures within this time.
const (
	maxFailures = 5
	failureTime = time.Minute
)

// notStarted records that a process did not start.
func (s *supervisor) notStarted(err error) {
	s.engine.logger.Error("process does not start", logkey.Worker, s.worker, logkey.Error, err)
	s.mu.Lock()
	s.lost++
	s.mu.Unlock()
	s.failed("its process does not start: " + err.Error())
}

// pause waits for the backoff after failures, which is zero after the first. If the plugin is disabled it waits
// until it is enabled, if patient, and returns errDisabled otherwise.
func (s *supervisor) pause(ctx context.Context, patient bool) error {
	for {
		s.mu.Lock()
		wait, changed, disabled := s.backoffLocked(), s.changed, s.disabled != ""
		s.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case disabled && !patient:
			return errDisabled
		case !disabled && wait <= 0:
			return nil
		}
		var after <-chan time.Time
		if !disabled {
			after = time.After(wait)
		}
		select {
		case <-after:
			return nil
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// backoffLocked returns how long to wait from now on because of the latest failures.
func (s *supervisor) backoffLocked() time.Duration {
	s.forgetLocked()
	n := len(s.failures)
	if n < 2 {
		return 0
	}
	return time.Until(s.failures[n-1].Add(100 * time.Millisecond << (2 * (n - 2))))
}

func (s *supervisor) forgetLocked() {
	for len(s.failures) > 0 && time.Since(s.failures[0]) > failureTime {
		s.failures = s.failures[1:]
	}
}

// failed counts a failure, and disables the plugin after too many.
func (s *supervisor) failed(why string) {
	s.mu.Lock()
	s.failures = append(s.failures, time.Now())
	s.forgetLocked()
	var reason string
	switch {
	case s.disabled != "":
	case len(s.failures) >= maxFailures:
		reason = "5 failures within a minute, the last: " + why
	case s.lost >= maxFailures: // together these may take longer than failureTime
		reason = "5 failures one after the other, the last: " + why
	}
	if reason == "" {
		s.mu.Unlock()
		return
	}
	s.disabled = reason
	s.broadcastLocked()
	s.mu.Unlock()
	s.engine.logger.Error("worker is disabled", logkey.Worker, s.worker, logkey.Reason, reason)
	s.tell()
}

// tell calls notify if the plugin was disabled or enabled since the last call. It reads the current state under the
// lock, so that concurrent calls can't arrive out of order.
func (s *supervisor) tell() {
	s.notifying.Lock()
	defer s.notifying.Unlock()
	s.mu.Lock()
	notify, reason := s.notify, s.disabled
	s.mu.Unlock()
	if notify != nil && reason != s.notified {
		s.notified = reason
		notify(reason)
	}
}

// onDisabled sets notify. After onDisabled(nil) has returned, the function set before is not called any more.
func (s *supervisor) onDisabled(notify func(reason string)) {
	s.notifying.Lock()
	s.mu.Lock()
	s.notify, s.notified = notify, ""
	s.mu.Unlock()
	s.notifying.Unlock()
	s.tell()
}

// enable lets a disabled plugin start processes again.
func (s *supervisor) enable() {
	s.mu.Lock()
	s.disabled, s.failures, s.lost = "", nil, 0
	s.broadcastLocked()
	s.mu.Unlock()
	s.tell()
}
