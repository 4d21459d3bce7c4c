package guesttest

import (
	"time"

	"github.com/tetratelabs/wazero/sys"
)

// setClocks gives the guest clocks that go on by a microsecond when they are
// looked at, and by what it waits and sleeps, which takes no time. So what a guest
// measures is the same on every machine.
func (g *Guest) setClocks() {
	now := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	last, waited := g.Attempt, time.Duration(0)
	look := func() time.Time {
		if g.Attempt != last {
			last, waited = g.Attempt, 0
		}
		now = now.Add(time.Microsecond + last.Ops.Elapsed - waited)
		waited = last.Ops.Elapsed
		return now
	}
	g.config = g.config.
		WithNanotime(func() int64 { return look().UnixNano() }, sys.ClockResolution(time.Microsecond)).
		WithWalltime(func() (sec int64, nsec int32) {
			at := look()
			return at.Unix(), int32(at.Nanosecond())
		}, sys.ClockResolution(time.Microsecond)).
		WithNanosleep(func(ns int64) { g.Attempt.Ops.Elapsed += time.Duration(ns) })
}
