// Package schedule submits jobs at the times that a manifest asks for. A
// [Timing] says which times those are, its ticks; what becomes of a tick is
// decided from the schedule, its state and the clock alone.
//
//	clock ─► due ticks ─► decide (catch up, overlap) ─► queue.Fire: state and jobs in one batch
//
// A tick makes at most one job, over crashes too: the state that says up to
// where ticks are decided and the jobs of those ticks become durable together,
// and the id of a job follows from its tick. Nothing polls: there is one alarm,
// for the next tick of all schedules, on the wall clock.
package schedule

import (
	"errors"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
)

// Bounds that no setting changes.
const (
	MaxCatchUp = 1000           // ticks that are caught up at once
	MaxWaiting = 100            // ticks that wait for the end of a job; more are skipped
	MaxOpen    = 100            // open jobs of a schedule that doesn't allow them to overlap
	MaxJitter  = 24 * time.Hour // of a tick
	MaxLabels  = jobhost.MaxLabels - 2
)

// Schedule says when which job is submitted. It isn't changed once it is used.
type Schedule struct {
	Name        string
	Description string
	Timing      Timing
	// Job is what is submitted; without ID, RunAt and Delay, and up to
	// [MaxLabels] labels.
	Job jobhost.Spec
	// Jitter delays each job by up to so much: always the same for one tick.
	Jitter time.Duration
	// CatchUp says what becomes of ticks that nobody saw; empty = one.
	CatchUp jobhost.CatchUp
	// CatchUpLimit bounds how many make a job with "all": the latest; 0 = 100.
	CatchUpLimit int
	// Overlap says what becomes of a tick while a job is open; empty = skip.
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

// Check reports everything that is wrong with the schedule by itself.
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

// maxJitter keeps the job of a tick from coming after that of the next one.
func (s *Schedule) maxJitter() time.Duration {
	if every := s.Timing.Interval(); every > 0 {
		return min(every, MaxJitter)
	}
	return MaxJitter
}

// jobOf returns the job of a tick that is made at a time. Its id follows from
// the tick.
func (s *Schedule) jobOf(tick, now time.Time) jobhost.Spec {
	spec := s.job()
	spec.ID = jobID(s.Name, tick)
	spec.Labels[jobhost.LabelTick] = tick.In(s.Timing.Zone()).Format(time.RFC3339)
	spec.Delay = max(tick.Add(s.jitterOf(tick)).Sub(now), 0)
	return spec
}

// job returns the job without what depends on a tick.
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

// jitterOf returns how long the job of a tick is delayed: spread evenly over
// schedules and ticks, and the same whenever it is asked.
func (s *Schedule) jitterOf(tick time.Time) time.Duration {
	if s.Jitter <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.Name + " " + strconv.FormatInt(tick.Unix(), 10)))
	// The upper bits of the sum hardly depend on the last bytes: mixed they do.
	sum := h.Sum64()
	sum ^= sum >> 33
	sum *= 0xff51afd7ed558ccd
	sum ^= sum >> 33
	return time.Duration(sum % uint64(s.Jitter+1))
}
