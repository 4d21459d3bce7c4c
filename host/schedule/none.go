package schedule

import (
	"context"

	"github.com/jobhost/jobhost"
)

// None stands for the [Scheduler] of a host whose store keeps no schedules.
type None struct{}

var _ jobhost.Scheduler = None{}

var errNone = &jobhost.Error{Code: jobhost.CodeNotFound, Message: "this host has no schedules: its store keeps none"}

// Schedules implements [jobhost.Scheduler].
func (None) Schedules(context.Context) ([]jobhost.Schedule, error) { return nil, errNone }

// Schedule implements [jobhost.Scheduler].
func (None) Schedule(context.Context, string) (jobhost.Schedule, error) {
	return jobhost.Schedule{}, errNone
}

// RunSchedule implements [jobhost.Scheduler].
func (None) RunSchedule(context.Context, string) (jobhost.Receipt, error) {
	return jobhost.Receipt{}, errNone
}

// PauseSchedule implements [jobhost.Scheduler].
func (None) PauseSchedule(context.Context, string) (jobhost.Schedule, error) {
	return jobhost.Schedule{}, errNone
}

// ResumeSchedule implements [jobhost.Scheduler].
func (None) ResumeSchedule(context.Context, string) (jobhost.Schedule, error) {
	return jobhost.Schedule{}, errNone
}
