package schedule

import "time"

// Time zones. A cron library that is asked for ticks in a time zone decides by
// itself what becomes of times of day that a change of the clocks leaves out or
// repeats, and none that was looked at does what an operator would expect. So
// the library is asked for times of day only, as if all days had 24 hours, and
// what they are in the zone is settled here:
//
//   - With certain hours ("30 2 * * *") each time of day has one tick: the first
//     moment at which clocks show it, or, when they never do, the moment of the
//     change. Times that fall together are one tick.
//   - With the hours as * ("*/10 * * * *") ticks are the moments at which clocks
//     show a time that fits: none for times that are left out, two for times
//     that come twice. So work that is to be done every ten minutes is.
//
// Both walk over the stretches between changes of a zone, in each of which time
// of day and time differ by an offset.

// stretch is a stretch of time with one offset from UTC.
type stretch struct {
	start, end time.Time // end is exclusive; zero = there is none
	offset     time.Duration
}

// stretchOf returns the stretch that a time is in, or a part of it: years
// beyond a zone's table end in bounds at which nothing changes, and on the last
// day of a leap year they lie before the time itself.
func stretchOf(t time.Time) stretch {
	start, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		end = t.Add(12 * time.Hour)
	}
	if start.After(t) {
		start = t
	}
	return stretch{start: start, end: end, offset: offsetAt(t)}
}

func offsetAt(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// face is what clocks show, written as if it were UTC.
func face(t time.Time, offset time.Duration) time.Time { return t.UTC().Add(offset) }

// nextLocal returns the first tick of the expression after a time, which is in
// the schedule's zone.
func (t *Timing) nextLocal(after time.Time) time.Time {
	horizon := after.AddDate(searchYears, 0, 0)
	at := after
	for first := true; ; first = false {
		s := stretchOf(at)
		if !first {
			s.start = at // which it isn't by itself where nothing changes: what lies before was looked at
		}
		shown := t.cron.Next(t.searchFrom(s, at, first))
		if shown.IsZero() {
			return time.Time{}
		}
		if s.end.IsZero() || shown.Before(face(s.end, s.offset)) {
			return t.momentOf(s, shown)
		}
		if at = s.end; at.After(horizon) {
			return time.Time{}
		}
	}
}

// searchFrom returns the time of day after which a stretch's ticks are looked
// for: after that of at, or in a stretch that begins later, from its beginning.
func (t *Timing) searchFrom(s stretch, at time.Time, first bool) time.Time {
	const before = -time.Nanosecond // so that the beginning itself is found
	from := face(at, s.offset)
	if !first {
		from = from.Add(before)
	}
	if t.wild || s.start.IsZero() {
		return from
	}
	// Times up to here were dealt with before the change: clocks that were put
	// back show them again, and clocks that were put forward skipped what
	// follows, which is due at the change.
	dealt := face(s.start, offsetAt(s.start.Add(before))).Add(before)
	if !first || from.Before(dealt) {
		return dealt
	}
	return from
}

// momentOf returns when a time of day is shown in a stretch: at its beginning
// if the change left the time out.
func (t *Timing) momentOf(s stretch, shown time.Time) time.Time {
	moment := shown.Add(-s.offset)
	if moment.Before(s.start) {
		moment = s.start
	}
	return moment.In(t.zone)
}
