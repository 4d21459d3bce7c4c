// Package schedule submits jobs at the times that a manifest asks for. A [Timing] says which
// times those are, its ticks; what happens for a tick depends only on the schedule, its state
// and the clock.
//
//	clock ─► due ticks ─► decide (catch up, overlap) ─► queue.Fire: state and jobs in one batch
//
// A tick creates at most one job, even across crashes: the state that says up to where ticks
// are decided and the jobs of those ticks become durable together, and a job's id is derived
// from its tick. Nothing polls: there is one alarm, for the next tick of all schedules, on the
// wall clock.
package schedule

import (
	"errors"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
)

// Fixed limits.
const (
	MaxCatchUp = 1000           // ticks caught up at once
	MaxWaiting = 100            // ticks waiting for the end of a job; more are skipped
	MaxOpen    = 100            // open jobs of a schedule that doesn't allow overlaps
	MaxJitter  = 24 * time.Hour // of a tick
	MaxLabels  = jobhost.MaxLabels - 2
)

// Schedule says when to submit which job. It must not be changed once in use.
type Schedule struct {
	Name        string
	Description string
	Timing      Timing
	// Job is what is submitted; without ID, RunAt and Delay, and with up to [MaxLabels]
	// labels.
	Job jobhost.Spec
	// Jitter delays each job by up to this; the delay of a tick is always the same.
	Jitter time.Duration
	// CatchUp says what to do about missed ticks; empty = one.
	CatchUp jobhost.CatchUp
	// CatchUpLimit bounds how many of them, the latest, create a job with "all"; 0 = 100.
	CatchUpLimit int
	// Overlap says what to do about a tick while a job is open; empty = skip.
	Overlap jobhost.Overlap
}

const defaultCatchUpLimit = 100

// OrDefaults returns the schedule with its defaults filled in.
func (s Schedule) OrDefaults() Schedule {
	if s.CatchUp == "" {
		s.CatchUp = jobhost.CatchUpOne
	}
	if s.CatchUpLimit == 0 {
		s.CatchUpLimit = defaultCatchUpLimit
	}
	if s.Overlap == "" {
		s.Overlap = jobhost.OverlapSkip
	}
	return s
}

// Check reports all faults of the schedule itself.
func (s *Schedule) Check() error {
	errs := []error{jobhost.CheckSchedule(s.Name), s.Job.Check()}
	if next := s.Timing.Next(time.Unix(0, 0)); next.IsZero() {
		errs = append(errs, jobhost.Invalid("cron", "", "it is never due"))
	}
	if s.Jitter < 0 || s.Jitter > s.maxJitter() {
		errs = append(errs, jobhost.Invalid("jitter", "", "jitter %v is not between 0s and %v", jobhost.Duration(s.Jitter), jobhost.Duration(s.maxJitter())))
	}
	if s.CatchUpLimit < 0 || s.CatchUpLimit > MaxCatchUp {
		errs = append(errs, jobhost.Invalid("catch_up_limit", "", "catch_up_limit %d is not between 1 and %d", s.CatchUpLimit, MaxCatchUp))
	}
	switch s.CatchUp {
	case "", jobhost.CatchUpNone, jobhost.CatchUpOne, jobhost.CatchUpAll:
	default:
		errs = append(errs, jobhost.Invalid("catch_up", "", "catch_up %q is not none, one or all", s.CatchUp))
	}
	switch s.Overlap {
	case "", jobhost.OverlapAllow, jobhost.OverlapSkip, jobhost.OverlapQueue:
	default:
		errs = append(errs, jobhost.Invalid("overlap", "", "overlap %q is not allow, skip or queue", s.Overlap))
	}
	if s.Job.ID != "" || s.Job.Delay != 0 || !s.Job.RunAt.IsZero() {
		errs = append(errs, jobhost.Invalid("job", "", "id and time of a scheduled job follow from its tick"))
	}
	return errors.Join(append(errs, s.checkLabels())...)
}

func (s *Schedule) checkLabels() error {
	if n := len(s.Job.Labels); n > MaxLabels {
		return jobhost.Invalid("labels", "two are for the schedule's own", "%d labels are more than %d", n, MaxLabels)
	}
	for _, own := range []string{jobhost.LabelSchedule, jobhost.LabelTick} {
		if _, taken := s.Job.Labels[own]; taken {
			return jobhost.Invalid("labels", "", "the label %s is the schedule's own", own)
		}
	}
	return nil
}

// maxJitter keeps a tick's job from coming after that of the next tick.
func (s *Schedule) maxJitter() time.Duration {
	if every := s.Timing.Interval(); every > 0 {
		return min(every, MaxJitter)
	}
	return MaxJitter
}

// jobOf returns the job of a tick, as created at now. Its id is derived from the tick.
func (s *Schedule) jobOf(tick, now time.Time) jobhost.Spec {
	spec := s.job()
	spec.ID = jobID(s.Name, tick)
	spec.Labels[jobhost.LabelTick] = tick.In(s.Timing.Zone()).Format(time.RFC3339)
	spec.Delay = max(tick.Add(s.jitterOf(tick)).Sub(now), 0)
	return spec
}

// job returns the job without the parts that depend on a tick.
func (s *Schedule) job() jobhost.Spec {
	spec := s.Job
	spec.Labels = make(map[string]string, len(s.Job.Labels)+2)
	for name, value := range s.Job.Labels {
		spec.Labels[name] = value
	}
	spec.Labels[jobhost.LabelSchedule] = s.Name
	return spec
}

// jobID returns the id of a tick's job, such as "nightly.20260308T023000Z".
func jobID(name string, tick time.Time) string {
	return name + "." + tick.UTC().Format(jobhost.TickLayout)
}

// jitterOf returns the delay of a tick's job: evenly distributed over schedules and ticks, and
// always the same for a tick.
func (s *Schedule) jitterOf(tick time.Time) time.Duration {
	if s.Jitter <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.Name + " " + strconv.FormatInt(tick.Unix(), 10)))
	// The upper bits of the sum hardly depend on the last bytes: mix them.
	sum := h.Sum64()
	sum ^= sum >> 33
	sum *= 0xff51afd7ed558ccd
	sum ^= sum >> 33
	return time.Duration(sum % uint64(s.Jitter+1))
}
