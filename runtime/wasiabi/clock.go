package wasiabi

import (
	"math"
	"math/rand/v2"
	"time"
)

func clockFunctions() []Function {
	return []Function{
		define("clock_res_get", "id resolution", clockResGet),
		define("clock_time_get", "id precision:i64 time", clockTimeGet),
	}
}

// Clocks. There are no CPU time clocks: those two show the same as the
// monotonic one.
const (
	realtime = iota
	monotonic
	processTime
	threadTime
)

// coarse is the step of clocks that aren't precise.
const coarse = time.Millisecond

// monotonicZero is when monotonic clocks began. All instances of a process
// share it, so that time doesn't go back for a guest whose memory was copied
// from another instance; its value reveals nothing about the host's uptime.
var monotonicZero = time.Now().Add(-time.Second - rand.N(24*time.Hour))

// clock_res_get(id, resolution) returns the step of a clock, in nanoseconds.
func clockResGet(s *System, m memory, a args) Errno {
	if a.u32(0) > threadTime {
		return EINVAL
	}
	return m.put64(a.u32(1), uint64(s.step()))
}

// clock_time_get(id, precision, time) returns the time, in nanoseconds.
func clockTimeGet(s *System, m memory, a args) Errno {
	now, ok := clock(a.u32(0))
	if !ok {
		return EINVAL
	}
	return m.put64(a.u32(2), uint64(now-now%s.step()))
}

// step is the step of all clocks.
func (s *System) step() time.Duration {
	if s.precise {
		return 1
	}
	return coarse
}

// clock returns what a clock shows, to the nanosecond.
func clock(id uint32) (time.Duration, bool) {
	switch id {
	case realtime:
		return time.Duration(time.Now().UnixNano()), true
	case monotonic, processTime, threadTime:
		return time.Since(monotonicZero), true
	}
	return 0, false
}

// moment is what both kinds of clocks showed at one time.
type moment struct{ real, monotonic time.Duration }

func present() moment {
	now := time.Now()
	return moment{time.Duration(now.UnixNano()), now.Sub(monotonicZero)}
}

// until returns how long it takes from a moment until a clock shows a time or,
// without abs, until it has advanced by that much. Since a guest sees only the
// clock's steps, it is woken at a step, and never sees a sleep that was too
// short.
func (s *System) until(id uint32, timeout uint64, abs bool, from moment) (time.Duration, bool) {
	if id > threadTime || timeout == 0 {
		return 0, id <= threadTime
	}
	now := from.monotonic
	if id == realtime {
		now = from.real
	}
	const never = math.MaxInt64 - coarse // leaves room for rounding
	end := time.Duration(min(timeout, uint64(never)))
	if !abs {
		end = min(end, never-now) + now
	}
	if late := end % s.step(); late > 0 {
		end += s.step() - late
	}
	return max(end-now, 0), true
}
