package schedule_test

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/schedule"
)

// history is what a site goes through: it is up and down by turns, beginning
// with up. So that nothing happens at one time, ticks come at full minutes, the
// host is started and stopped 30 s after one, and jobs end 45 s after one; those
// that would end while it is down end when it is up.
type history struct {
	spans []int // minutes
	runs  int   // how many minutes jobs take; 0 = they never end
}

// A history is gone through in steps of a quarter of a minute.
const (
	step    = 15 * time.Second
	atTick  = 0
	atStart = 2
	atEnd   = 3
)

// reference tells which ticks of a schedule make jobs, by going through a
// history step by step. Ticks are minutes since its beginning.
type reference struct {
	def     schedule.Schedule
	runs    int
	now     int   // step
	open    []int // steps at which open jobs end
	waiting []int // ticks
	fired   []int // ticks
}

func (r *reference) fire(tick int) {
	end := math.MaxInt
	if r.runs > 0 {
		if end = r.now/4*4 + r.runs*4 + atEnd; end <= r.now {
			end += 4
		}
	}
	r.fired, r.open = append(r.fired, tick), append(r.open, end)
}

func (r *reference) place(tick int) {
	switch {
	case r.def.Overlap == jobhost.OverlapAllow || len(r.open) == 0:
		r.fire(tick)
	case r.def.Overlap == jobhost.OverlapQueue && len(r.waiting) < schedule.MaxWaiting:
		r.waiting = append(r.waiting, tick)
	}
}

// finish ends the jobs whose time has come, and lets a tick go on that waits.
func (r *reference) finish() {
	r.open = slices.DeleteFunc(r.open, func(end int) bool { return end <= r.now })
	if len(r.open) == 0 && len(r.waiting) > 0 {
		r.fire(r.waiting[0])
		r.waiting = r.waiting[1:]
	}
}

// catchUp looks at the ticks that came while the host was down.
func (r *reference) catchUp(late []int) {
	keep := 1
	if r.def.CatchUp == jobhost.CatchUpAll {
		keep = r.def.CatchUpLimit
	}
	for _, tick := range late[max(len(late)-keep, 0):] {
		if r.def.CatchUp != jobhost.CatchUpNone || r.now-4*tick <= 4 {
			r.place(tick)
		}
	}
}

func (r *reference) run(h history, ticks map[int]bool) []int {
	r.runs, r.now = h.runs, atStart
	for i, minutes := range h.spans {
		end := r.now + 4*minutes
		if i%2 == 1 {
			var late []int
			for tick := r.now/4 + 1; 4*tick < end; tick++ {
				if ticks[tick] {
					late = append(late, tick)
				}
			}
			r.now = end
			r.catchUp(late)
			r.finish()
			continue
		}
		for r.now++; r.now <= end; r.now++ {
			switch {
			case r.now%4 == atTick && ticks[r.now/4]:
				r.place(r.now / 4)
			case r.now%4 == atEnd:
				r.finish()
			}
		}
		r.now = end
	}
	return r.fired
}

// TestAgainstReference compares what schedulers do in random histories with
// the reference.
func TestAgainstReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		expr := rapid.SampledFrom([]string{"*/7 * * * *", "0 * * * *", "*/15 3-9 * * *", "10,50 */2 * * *", "* * * * *"}).Draw(rt, "expr")
		def := of(t, expr, func(s *schedule.Schedule) {
			s.CatchUp = rapid.SampledFrom([]jobhost.CatchUp{jobhost.CatchUpNone, jobhost.CatchUpOne, jobhost.CatchUpAll}).Draw(rt, "catch up")
			s.Overlap = rapid.SampledFrom([]jobhost.Overlap{jobhost.OverlapAllow, jobhost.OverlapSkip, jobhost.OverlapQueue}).Draw(rt, "overlap")
			s.CatchUpLimit = rapid.IntRange(1, 50).Draw(rt, "limit")
		})
		h := history{
			spans: rapid.SliceOfN(rapid.IntRange(1, 150), 1, 7).Draw(rt, "spans"),
			runs:  rapid.SampledFrom([]int{0, 1, 5, 20, 90}).Draw(rt, "runs"),
		}
		begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of every bubble
		ticks := map[int]bool{}
		for at := def.Timing.Next(begin); at.Sub(begin) < 60*time.Hour; at = def.Timing.Next(at) {
			ticks[int(at.Sub(begin)/time.Minute)] = true
		}
		var want []string
		for _, tick := range (&reference{def: def}).run(h, ticks) {
			want = append(want, begin.Add(time.Duration(tick)*time.Minute).Format("01-02T15:04"))
		}
		var got []string
		synctest.Test(t, func(t *testing.T) { got = simulate(t, def, h) })
		if a, b := strings.Join(got, " "), strings.Join(want, " "); a != b {
			rt.Fatalf("%s over %v, jobs of %d minutes, %s %s\ngot  %s\nwant %s", expr, h.spans, h.runs, def.CatchUp, def.Overlap, a, b)
		}
	})
}

// simulate lets a site go through a history and returns its ticks.
func simulate(t *testing.T, def schedule.Schedule, h history) []string {
	s := newSite(t)
	defer s.close()
	var mu sync.Mutex // held by timers, and while the host is started or stopped
	down := true
	var ended []string // while the host was down
	s.onFired = func(id string) {
		if h.runs == 0 {
			return
		}
		now := time.Now()
		end := now.Truncate(time.Minute).Add(time.Duration(h.runs)*time.Minute + atEnd*step)
		if !end.After(now) {
			end = end.Add(time.Minute)
		}
		time.AfterFunc(end.Sub(now), func() {
			mu.Lock()
			defer mu.Unlock()
			if down {
				ended = append(ended, id)
				return
			}
			s.end(id)
		})
	}
	pass(atStart * step)
	for i, minutes := range h.spans {
		if i%2 == 1 {
			mu.Lock()
			s.stop()
			down = true
			mu.Unlock()
			pass(time.Duration(minutes) * time.Minute)
		}
		if i%2 == 1 || i == 0 {
			s.start(def)
			synctest.Wait()
			mu.Lock()
			for _, id := range ended {
				s.end(id)
			}
			ended, down = nil, false
			mu.Unlock()
			synctest.Wait()
		}
		if i%2 == 0 {
			pass(time.Duration(minutes) * time.Minute)
		}
	}
	return s.ticks()
}
