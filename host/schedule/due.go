package schedule

import "time"

// maxCounted is how many ticks are counted at most that nobody saw. Beyond it
// it doesn't matter how many there were.
const maxCounted = 10_000

// due returns the last n ticks after one time and up to another, oldest first,
// and how many there were before those, counted up to maxCounted. However long
// the host was down, it looks at about 4·n ticks and those that it counts.
func (t *Timing) due(after, until time.Time, n int) (ticks []time.Time, before int) {
	if next := t.Next(after); next.IsZero() || next.After(until) {
		return nil, 0
	}
	unit := time.Minute // no expression has ticks that are closer
	if t.every > 0 {
		unit = t.every
	}
	for span := time.Duration(n) * unit; ; span *= 4 {
		from := until.Add(-span)
		whole := from.Before(after) || span <= 0 || span > maxSpan
		if whole {
			from = after
		}
		if ticks = t.between(from, until); len(ticks) >= n || whole {
			break
		}
	}
	ticks = ticks[max(len(ticks)-n, 0):]
	for at := t.Next(after); at.Before(ticks[0]) && before < maxCounted; at = t.Next(at) {
		before++
	}
	return ticks, before
}

// maxSpan is as far as the search for ticks goes back before it begins at the
// beginning: ticks so far apart are few.
const maxSpan = 40 * 366 * 24 * time.Hour

func (t *Timing) between(after, until time.Time) (ticks []time.Time) {
	for at := t.Next(after); !at.IsZero() && !at.After(until); at = t.Next(at) {
		ticks = append(ticks, at)
	}
	return ticks
}
