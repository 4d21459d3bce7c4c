package queue

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// clock tells the time of day as it was when the queue opened, plus what has
// passed since: a jump of the system's clock changes no task's order or time.
//
// With a store that hosts share, the time is the store's, and two machines don't
// count the same seconds. So the clock goes a little faster or slower until
// it shows what the store's does: see follow.
type clock struct {
	wall    func() time.Time // the store's clock, which may jump
	began   time.Time
	stretch atomic.Pointer[stretch]
}

// stretch is a time in which the clock goes at one speed.
type stretch struct {
	from  time.Duration // since the clock began
	base  time.Time     // what it showed then
	gains time.Duration // what it gains in each million of what passes
}

// mostGain is how much faster or slower a clock goes at most, in parts of a million.
const mostGain = 1000

func newClock(wall func() time.Time) *clock {
	c := &clock{wall: wall, began: time.Now()}
	c.stretch.Store(&stretch{base: wall()})
	return c
}

func (c *clock) now() time.Time { return c.stretch.Load().at(time.Since(c.began)) }

func (s *stretch) at(since time.Duration) time.Time {
	d := since - s.from
	if s.gains != 0 {
		d += d / 1e6 * s.gains
	}
	return s.base.Add(d)
}

// ahead returns by how much the store's clock is ahead of this one.
func (c *clock) ahead() time.Duration { return c.wall().Round(0).Sub(c.now().Round(0)) }

// follow makes the clock show what the store's does, within followIn or as soon as it can. A clock
// that was set is not followed.
func (c *clock) follow(ahead time.Duration) {
	gains := min(max(ahead*1e6/followIn, -mostGain), mostGain)
	if ahead.Abs() > setApart {
		gains = 0
	}
	since := time.Since(c.began)
	c.stretch.Store(&stretch{from: since, base: c.stretch.Load().at(since), gains: gains})
}

// Now is the time on the queue's clock, on which all that it tells is dated.
func (q *Queue) Now() time.Time { return q.clock.now() }

// The notes about the clock, each a number of milliseconds: what it had shown at last, and
// until when nothing is removed.
const (
	noteClock = "clock.seen"
	noteCalm  = "clock.calm"
)

const (
	seenEvery = time.Hour      // how often it is noted what the clock shows
	leap      = 24 * time.Hour // a clock that is so far past what was noted may be wrong
	calmFor   = time.Hour      // how long nothing is removed then
	setApart  = time.Minute    // by how much two clocks differ when one of them was set
	followIn  = time.Minute    // in which time the difference to a store's clock goes away
)

// compareClock compares the clock with what it has shown before. One that was set back has
// left times in the store that may be years away, and one that has gone far ahead
// lets everything that is kept for a time be over.
//
// With a store that hosts share both are times of the store's clock, so it makes no difference
// how far the clock of a host that led was ahead. As hosts can't measure that clock exactly, it
// has to be far behind to be taken for one that was set back: a task waits longer by
// the difference, and none runs early.
func (q *Queue) compareClock(ctx context.Context) error {
	newest, err := q.store.Newest(ctx)
	if err != nil {
		return err
	}
	notes, err := q.store.Notes(ctx)
	if err != nil {
		return err
	}
	now := record.MillisOf(q.clock.now())
	reached, calm := max(newest, numberIn(notes[noteClock])), numberIn(notes[noteCalm])
	switch ahead := time.Duration(now-reached) * time.Millisecond; {
	case ahead < -q.behind():
		calm = min(calm, now)
		if err := q.rewind(ctx, reached, now); err != nil {
			return err
		}
	case reached != 0 && ahead > leap:
		calm = now + record.Millis(calmFor.Milliseconds())
		q.cfg.Logger.Warn("the clock is far past what it showed when the host ran last: nothing is removed for an hour, since it may be wrong",
			logkey.Duration, ahead, logkey.Hint, "if the clock is wrong, stop the host, set it right, and start the host again")
		if err := q.Remember(ctx, noteCalm, strconv.FormatInt(int64(calm), 10)); err != nil && q.full() == nil {
			return err
		}
	}
	if calm > now {
		q.calm = calm.Time()
	}
	return nil
}

// behind is by how much the clock may be behind what was written, and was not set back.
func (q *Queue) behind() time.Duration {
	if q.leased != nil {
		return setApart
	}
	return time.Second
}

// rewind makes times of a clock that was ahead those that they would have been without it.
func (q *Queue) rewind(ctx context.Context, from, to record.Millis) error {
	back := time.Duration(from-to) * time.Millisecond
	q.cfg.Logger.Warn("the clock was set back since the host ran last; what was due then is due now, and what it has written with the later time is as much earlier",
		logkey.Duration, back)
	ends := make(chan error, 1)
	q.store.Commit([]record.Op{
		&record.Rewind{From: from, To: to, Until: from + 2*record.Millis(seenEvery.Milliseconds())},
		&record.Note{Name: noteClock, Text: strconv.FormatInt(int64(to), 10)},
		&record.Note{Name: noteCalm},
	}, func(_ []record.OpResult, err error) { ends <- err })
	select {
	case err := <-ends:
		if err != nil && q.full() != nil {
			q.cfg.Logger.Warn("there is no room to change times of a clock that was ahead; the next start does it", logkey.Error, err)
			return nil //nolint:nilerr // a host starts on a full disk
		}
		if err != nil {
			return fmt.Errorf("set the clock back: %w", err)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// numberIn reads a note; one that says nothing is 0.
func numberIn(note string) record.Millis {
	n, err := strconv.ParseInt(note, 10, 64)
	if err != nil {
		return 0
	}
	return record.Millis(n)
}

// CalmUntil is until when nothing is removed by its age, since the clock may be wrong; the
// zero time = there is no reason to wait.
func (q *Queue) CalmUntil() time.Time { return q.calm }

// watcher notes what the clock shows, and says when the system's was set.
type watcher struct {
	q     *Queue
	noted time.Time
	told  time.Duration // by how much the system's was ahead
}

func (w *watcher) look(ctx context.Context) {
	ahead := w.q.clock.ahead()
	if w.q.leased != nil {
		w.q.clock.follow(ahead)
	}
	if (ahead - w.told).Abs() > setApart {
		w.told = ahead
		w.q.cfg.Logger.Warn(w.set(), "ahead", ahead)
	}
	now := w.q.clock.now()
	if now.Sub(w.noted) < seenEvery {
		return
	}
	if err := w.q.Remember(ctx, noteClock, strconv.FormatInt(int64(record.MillisOf(now)), 10)); err == nil {
		w.noted = now
	}
}

// set says that the clock was set that the queue's has begun with.
func (w *watcher) set() string {
	if w.q.leased != nil {
		return "the database's clock was set: the host goes on by the time since it leads, and the next one that leads takes over the database's"
	}
	return "the system's clock was set, or the machine slept: the host goes on by the time since its start, and takes over the system's when it is started again"
}
