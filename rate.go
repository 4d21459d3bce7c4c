package jobhost

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate is how often something may happen: Count times in each Per. The zero
// value means no limit.
type Rate struct {
	Count int
	Per   time.Duration
}

// Bounds of a [Rate].
const (
	MaxRateCount = 1_000_000
	MaxRatePer   = 24 * time.Hour
)

// ParseRate reads a rate such as "100/s", "30/m" or "1/10s". The errors have
// code [CodeInvalid].
func ParseRate(text string) (Rate, error) {
	count, per, ok := strings.Cut(text, "/")
	if !ok {
		return Rate{}, invalidRate("%s is not a rate", clip(text))
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > MaxRateCount || strconv.Itoa(n) != count {
		return Rate{}, invalidRate("%s is not a number between 1 and %d", clip(count), MaxRateCount)
	}
	if per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	d, err := ParseDuration(per)
	if err != nil {
		return Rate{}, invalidRate("%s is not a time", clip(per))
	}
	r := Rate{Count: n, Per: time.Duration(d)}
	if r.Per <= 0 || r.Per > MaxRatePer || r.Every() == 0 {
		return Rate{}, invalidRate("%s is not a time up to %v", clip(per), Duration(MaxRatePer))
	}
	return r, nil
}

func invalidRate(format string, args ...any) error {
	return &Error{
		Code: CodeInvalid, Field: "rate_limit", Message: fmt.Sprintf(format, args...),
		Hint: `write it as "100/s", "30/m" or "1/10s"`,
	}
}

// Every is the time from one to the next; 0 = no limit.
func (r Rate) Every() time.Duration {
	if r.Count == 0 {
		return 0
	}
	return r.Per / time.Duration(r.Count)
}

// String returns the rate as [ParseRate] reads it; empty = no limit.
func (r Rate) String() string {
	if r.Count == 0 {
		return ""
	}
	per := Duration(r.Per).String()
	if len(per) == 2 {
		per = strings.TrimPrefix(per, "1")
	}
	return strconv.Itoa(r.Count) + "/" + per
}
