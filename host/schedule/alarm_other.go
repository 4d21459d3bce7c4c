//go:build !linux

package schedule

import (
	"time"

	"github.com/jobhost/jobhost/host/scope"
)

func newAlarm(*scope.Scope) (Alarm, error) { return newTimerAlarm(time.Now), nil }
