package jobhost

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration whose text form has a unit, such as "250ms",
// "1h30m" or "30d", in JSON and manifests.
type Duration time.Duration

const (
	day     = 24 * time.Hour
	maxDays = uint64(math.MaxInt64 / day)
)

// ParseDuration reads what [time.ParseDuration] reads, and whole days ("30d").
// A number without a unit is an error, since its meaning would be a guess.
func ParseDuration(text string) (Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil || n > maxDays {
			return 0, badDuration(text)
		}
		return Duration(time.Duration(n) * day), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, badDuration(text)
	}
	return Duration(d), nil
}

func badDuration(text string) error {
	return &Error{
		Code:    CodeInvalid,
		Message: fmt.Sprintf("%s is not a duration", clip(text)),
		Hint:    `write a number with a unit, such as "250ms", "30s", "1h30m" or "7d"`,
	}
}

// String returns the duration without parts that are zero: "1h" rather than
// "1h0m0s", and whole days as "30d".
func (d Duration) String() string {
	t := time.Duration(d)
	if t >= day && t%day == 0 {
		return strconv.FormatInt(int64(t/day), 10) + "d"
	}
	s := t.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := ParseDuration(string(text))
	if err == nil {
		*d = parsed
	}
	return err
}
