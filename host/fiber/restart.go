package fiber

import (
	"time"

	"github.com/jobhost/jobhost"
)

// restarts decides whether and when a fiber is started again.
type restarts struct {
	count int // in total
	// delay before the next restart; 0 = that of the first one.
	delay time.Duration
	// lately are the times of restarts that still count towards the intensity.
	lately []time.Time
}

// next returns the delay before restarting after a run that ended now and lasted
// for some time; false = there have been too many restarts lately. A run that
// lasted for the whole period was a good one: the delay starts over.
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

// wanted reports whether a policy asks for a restart after a run that failed or
// succeeded.
func wanted(policy *jobhost.RestartPolicy, failed bool) bool {
	return policy.When == jobhost.RestartAlways || policy.When == jobhost.RestartOnFailure && failed
}
