package jobhost

import (
	"context"
	"fmt"
	"time"
)

// CheckSchedule returns an error with code [CodeInvalid] unless name is a valid
// schedule name: what [CheckWorker] accepts.
func CheckSchedule(name string) error {
	if len(name) <= MaxWorkerBytes && isName(name, false) {
		return nil
	}
	return &Error{
		Code:    CodeInvalid,
		Field:   "schedule",
		Message: fmt.Sprintf("%s is not a schedule name", clip(name)),
		Hint:    "use 1 to 63 of a-z 0-9 . _ - beginning with a letter or digit",
	}
}

// The labels that every job of a schedule carries.
const (
	LabelSchedule = "schedule"      // name of the schedule
	LabelTick     = "schedule.tick" // RFC 3339; the tick that the job is for, not set for jobs of RunSchedule
)

// CatchUp says what happens to ticks that came while the host was down, the
// machine slept or the queue was full.
type CatchUp string

// The ways to catch up.
const (
	CatchUpNone CatchUp = "none" // they are missed
	CatchUpOne  CatchUp = "one"  // the latest makes a job, the others are missed
	CatchUpAll  CatchUp = "all"  // each makes a job, oldest first, up to a bound
)

// Overlap says what happens to a tick while a job of the same schedule is open.
type Overlap string

// The overlap policies.
const (
	OverlapAllow Overlap = "allow" // it makes a job
	OverlapSkip  Overlap = "skip"  // it is skipped
	OverlapQueue Overlap = "queue" // it waits until that job ends
)

// Schedule describes a schedule and its current state.
type Schedule struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Worker      string `json:"worker"`
	// Cron is the expression with its Timezone; empty when Every is the interval.
	Cron     string   `json:"cron,omitempty"`
	Timezone string   `json:"timezone,omitempty"`
	Every    Duration `json:"every,omitempty"`
	Jitter   Duration `json:"jitter,omitempty"`
	CatchUp  CatchUp  `json:"catch_up"`
	Overlap  Overlap  `json:"overlap"`
	// Paused schedules make no jobs except those of RunSchedule. PausedAt is when the
	// pause began.
	Paused   bool       `json:"paused"`
	PausedAt *time.Time `json:"paused_at,omitempty"`
	// Next lists the upcoming ticks, in the schedule's time zone; none while it is paused.
	Next []time.Time `json:"next"`
	// LastTick is the latest tick that made a job, and LastJob the latest job,
	// which may have been removed since.
	LastTick *time.Time `json:"last_tick,omitempty"`
	LastJob  string     `json:"last_job,omitempty"`
	// Waiting counts the ticks that wait for a job to end.
	Waiting int `json:"waiting,omitempty"`
	// Refused says why the last due tick could not make a job yet; it is retried.
	Refused string `json:"refused,omitempty"`
}

// Scheduler reports on the schedules of a host and controls them. A schedule
// that does not exist is not_found.
type Scheduler interface {
	// Schedules returns all of them sorted by name.
	Schedules(ctx context.Context) ([]Schedule, error)
	Schedule(ctx context.Context, name string) (Schedule, error)
	// RunSchedule submits the schedule's job now, regardless of its ticks,
	// overlap policy and pause. Errors are those of Submit.
	RunSchedule(ctx context.Context, name string) (Receipt, error)
	// PauseSchedule durably stops the ticks from making jobs; pausing a paused
	// schedule is not an error. Jobs already made continue.
	PauseSchedule(ctx context.Context, name string) (Schedule, error)
	// ResumeSchedule lets ticks make jobs from now on. Those that came during
	// the pause are not caught up, whatever the schedule's CatchUp says.
	ResumeSchedule(ctx context.Context, name string) (Schedule, error)
}
