package record

import "time"

// Millis is a time in milliseconds since 1970 UTC, as stores keep it. 0 = none.
type Millis int64

// MillisOf converts a time; the zero time is 0.
func MillisOf(t time.Time) Millis {
	if t.IsZero() {
		return 0
	}
	return Millis(t.UnixMilli())
}

// Time converts back; 0 is the zero time.
func (m Millis) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

// Hour returns when the hour began that a time is in.
func (m Millis) Hour() Millis { return m - m%3_600_000 }
