package jobhost

import (
	"context"
	"fmt"
	"time"
)

// CheckSchedule returns an error with code [CodeInvalid] unless name may name a
// schedule: what [CheckWorker] takes.
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
	LabelTick     = "schedule.tick" // RFC 3339; the tick that the job is for, not with jobs of RunSchedule
)

// CatchUp says what becomes of ticks that came while the host was down, the
// machine slept or the queue was full.
type CatchUp string

// The ways to catch up.
const (
	CatchUpNone CatchUp = "none" // they are missed
	CatchUpOne  CatchUp = "one"  // the latest makes a job, the others are missed
	CatchUpAll  CatchUp = "all"  // each makes a job, oldest first, up to a bound
)

// Overlap says what becomes of a tick while a job of the same schedule is open.
type Overlap string

// The overlap policies.
const (
	OverlapAllow Overlap = "allow" // it makes a job
	OverlapSkip  Overlap = "skip"  // it is skipped
	OverlapQueue Overlap = "queue" // it waits for the end of that job
)

// Schedule is what is known of a schedule.
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
	// Paused schedules make no jobs but those of RunSchedule. PausedAt says since when.
	Paused   bool       `json:"paused"`
	PausedAt *time.Time `json:"paused_at,omitempty"`
	// Next are the ticks to come, in the time zone of the schedule; none while it is paused.
	Next []time.Time `json:"next"`
	// LastTick is the latest tick that made a job, and LastJob the latest job,
	// which may have been removed since.
	LastTick *time.Time `json:"last_tick,omitempty"`
	LastJob  string     `json:"last_job,omitempty"`
	// Waiting counts the ticks that wait for the end of a job.
	Waiting int `json:"waiting,omitempty"`
	// Refused says why the last due tick could make no job yet; it is tried again.
	Refused string `json:"refused,omitempty"`
}

// Scheduler tells of the schedules of a host, and changes their course. A
// schedule that is not there is not_found.
type Scheduler interface {
	// Schedules returns all of them sorted by name.
	Schedules(ctx context.Context) ([]Schedule, error)
	Schedule(ctx context.Context, name string) (Schedule, error)
	// RunSchedule submits the schedule's job now, whatever its ticks, overlap
	// policy and pause say. Errors are those of Submit.
	RunSchedule(ctx context.Context, name string) (Receipt, error)
	// PauseSchedule durably stops the ticks from making jobs; pausing a paused
	// schedule is fine. Jobs that were made go on.
	PauseSchedule(ctx context.Context, name string) (Schedule, error)
	// ResumeSchedule lets ticks make jobs from now on. Those of the pause are
	// not caught up, whatever the schedule's CatchUp says.
	ResumeSchedule(ctx context.Context, name string) (Schedule, error)
}
