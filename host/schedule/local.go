package schedule

import "time"

// Time zones. A cron library that is asked for ticks in a time zone makes its
// own decision about times of day that a clock change skips or repeats, and none
// of those examined does what an operator would expect. So the library is asked
// only for times of day, as if all days had 24 hours, and they are mapped to the
// zone here:
//
//   - With specific hours ("30 2 * * *") each time of day has one tick: the first
//     moment at which clocks show it, or, if they never do, the moment of the
//     change. Times that coincide are one tick.
//   - With * for the hours ("*/10 * * * *") ticks are the moments at which clocks
//     show a matching time: none for skipped times, two for repeated ones. So
//     work that should be done every ten minutes is.
//
// Both cases walk over the stretches between changes of a zone, within each of
// which local time and UTC differ by a constant offset.

// stretch is a period with one offset from UTC.
type stretch struct {
	start, end time.Time // end is exclusive; zero = none
	offset     time.Duration
}

// stretchOf returns the stretch that contains a time, or a part of it: beyond a
// zone's table, years end in bounds at which nothing changes, and on the last
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

// face is what clocks show, expressed as if in UTC.
func face(t time.Time, offset time.Duration) time.Time { return t.UTC().Add(offset) }

// nextLocal returns the first tick of the expression after a time, which is in
// the schedule's zone.
func (t *Timing) nextLocal(after time.Time) time.Time {
	horizon := after.AddDate(searchYears, 0, 0)
	at := after
	for first := true; ; first = false {
		s := stretchOf(at)
		if !first {
			s.start = at // ZoneBounds may start earlier where nothing changes: what lies before was searched
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

// searchFrom returns the time of day after which to search a stretch for ticks:
// after that of at, or, in a stretch that begins later, from its beginning.
func (t *Timing) searchFrom(s stretch, at time.Time, first bool) time.Time {
	const before = -time.Nanosecond // so that the beginning itself is found
	from := face(at, s.offset)
	if !first {
		from = from.Add(before)
	}
	if t.wild || s.start.IsZero() {
		return from
	}
	// Times up to here were handled before the change: clocks that were put back
	// show them again, and clocks that were put forward skipped what follows,
	// which is due at the change.
	dealt := face(s.start, offsetAt(s.start.Add(before))).Add(before)
	if !first || from.Before(dealt) {
		return dealt
	}
	return from
}

// momentOf returns when a time of day is shown in a stretch: at its beginning if
// the change skipped the time.
func (t *Timing) momentOf(s stretch, shown time.Time) time.Time {
	moment := shown.Add(-s.offset)
	if moment.Before(s.start) {
		moment = s.start
	}
	return moment.In(t.zone)
}
