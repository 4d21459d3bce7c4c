package schedule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/jobhost/jobhost/host/scope"
)

// fileAlarm is a kernel timer on the wall clock (timerfd_create(2)). It keeps
// running while the machine sleeps, and wakes its reader when the clock is set
// (TFD_TIMER_CANCEL_ON_SET). Go's timers, on the monotonic clock, do neither.
type fileAlarm struct {
	file *os.File
	bell chan struct{}
}

func newAlarm(in *scope.Scope) (Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	// The file is non-blocking, so that Close ends a Read.
	a := &fileAlarm{file: os.NewFile(uintptr(fd), "alarm"), bell: make(chan struct{}, 1)}
	if err := in.Go("alarm", a.listen); err != nil {
		return nil, errors.Join(err, a.file.Close())
	}
	return a, nil
}

// listen turns expirations into rings until the file is closed.
func (a *fileAlarm) listen(context.Context) error {
	var expirations [8]byte
	for {
		switch _, err := a.file.Read(expirations[:]); {
		case err == nil, errors.Is(err, unix.ECANCELED): // it expired, or the clock was set
			ring(a.bell)
		case errors.Is(err, os.ErrClosed):
			return nil
		default:
			return fmt.Errorf("read the alarm: %w", err)
		}
	}
}

// Set implements [Alarm].
func (a *fileAlarm) Set(at time.Time) error {
	conn, err := a.file.SyscallConn()
	if err != nil {
		return err
	}
	var spec unix.ItimerSpec // zero = disarmed
	if !at.IsZero() {
		// Zero seconds would disarm it too; any time in the past rings at once.
		spec.Value = unix.NsecToTimespec(max(at.UnixNano(), 1))
	}
	var setErr error
	err = conn.Control(func(fd uintptr) {
		setErr = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &spec, nil)
		if errors.Is(setErr, unix.ECANCELED) {
			// The clock was set since the last read: the alarm is set, but the
			// caller should look at the clock again.
			setErr = nil
			ring(a.bell)
		}
	})
	return errors.Join(err, os.NewSyscallError("timerfd_settime", setErr))
}

// Rings implements [Alarm].
func (a *fileAlarm) Rings() <-chan struct{} { return a.bell }

// Close implements [Alarm].
func (a *fileAlarm) Close() error { return a.file.Close() }
