package fiber

import (
	"time"

	"github.com/jobhost/jobhost"
)

// restarts decides whether and when a fiber is started again.
type restarts struct {
	count int // ever
	// delay is what the next restart waits; 0 = as long as the first one.
	delay time.Duration
	// lately are the times of restarts that still count for the intensity.
	lately []time.Time
}

// next returns how long the restart waits that follows a run which ended now,
// after some time, and reports false if there have been too many lately. A run
// that lasted as long as restarts are counted was a good one: the delay is
// that of the first restart again.
func (r *restarts) next(policy *jobhost.RestartPolicy, now time.Time, lasted time.Duration) (time.Duration, bool) {
	within := time.Duration(policy.Within)
	first := 0
	for first < len(r.lately) && now.Sub(r.lately[first]) >= within {
		first++
	}
	r.lately = r.lately[first:]
	if len(r.lately) >= policy.Intensity {
		return 0, false
	}
	r.lately = append(r.lately, now)
	if r.delay == 0 || lasted >= within {
		r.delay = time.Duration(policy.Initial)
	}
	delay := r.delay
	r.delay = min(2*delay, time.Duration(policy.Max))
	return delay, true
}

// wanted reports whether a policy asks for a restart after a run that failed, or
// didn't.
func wanted(policy *jobhost.RestartPolicy, failed bool) bool {
	return policy.When == jobhost.RestartAlways || policy.When == jobhost.RestartOnFailure && failed
}
