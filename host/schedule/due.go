package schedule

import "time"

// maxCounted is the maximum number of missed ticks that are counted. Beyond it
// the exact number doesn't matter.
const maxCounted = 10_000

// due returns the last n ticks in (after, until], oldest first, and the number
// of ticks before those, up to maxCounted. However long the host was down, it
// examines about 4·n ticks plus those it counts.
func (t *Timing) due(after, until time.Time, n int) (ticks []time.Time, before int) {
	if next := t.Next(after); next.IsZero() || next.After(until) {
		return nil, 0
	}
	unit := time.Minute // no expression has ticks closer together
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

// maxSpan is how far back the search for ticks goes before it starts from the
// beginning: ticks so far apart are few.
const maxSpan = 40 * 366 * 24 * time.Hour

func (t *Timing) between(after, until time.Time) (ticks []time.Time) {
	for at := t.Next(after); !at.IsZero() && !at.After(until); at = t.Next(at) {
		ticks = append(ticks, at)
	}
	return ticks
}
