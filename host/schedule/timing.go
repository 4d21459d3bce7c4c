package schedule

import (
	"strings"
	"time"

	"github.com/netresearch/go-cron"

	"github.com/jobhost/jobhost"
)

// Limits of an interval.
const (
	MinEvery = time.Second
	MaxEvery = 366 * 24 * time.Hour
)

// maxExpression is the maximum length of an expression, in bytes.
const maxExpression = 256

// Timing says when a schedule is due: at the times of a cron expression in a time
// zone, or at all multiples of an interval since 1970 UTC. It has no state: the same
// timing has the same ticks on every host and after every start. The zero value is
// never due.
type Timing struct {
	every time.Duration
	cron  cron.Schedule // only asked for times of day in UTC: see local.go
	expr  string
	zone  *time.Location
	// wild: the hours are *, so ticks follow every elapsed hour rather than specific
	// times of day.
	wild bool
}

// Every returns the timing of an interval: whole seconds from [MinEvery] to
// [MaxEvery].
func Every(interval time.Duration) (Timing, error) {
	d := jobhost.Duration(interval)
	switch {
	case interval < MinEvery || interval > MaxEvery:
		return Timing{}, jobhost.Invalid("every", "", "%v is not between %v and %v", d, jobhost.Duration(MinEvery), jobhost.Duration(MaxEvery))
	case interval%time.Second != 0:
		return Timing{}, jobhost.Invalid("every", "", "%v is not a whole number of seconds", d)
	}
	return Timing{every: interval, zone: time.UTC}, nil
}

// Cron returns the timing of an expression of five fields (minute, hour, day of
// month, month, day of week) or a word such as @daily, in a time zone. An empty
// zone is UTC. The expression must be due within ten years. Errors are invalid,
// with the field "cron" or "timezone".
func Cron(expr, zone string) (Timing, error) {
	location, err := loadZone(zone)
	if err != nil {
		return Timing{}, err
	}
	if err := checkExpression(expr); err != nil {
		return Timing{}, err
	}
	parsed, err := parser().Parse(expr)
	if err != nil {
		return Timing{}, jobhost.Invalid("cron", cronHint, "%q is not a cron expression: %v", expr, err)
	}
	if _, ok := parsed.(*cron.SpecSchedule); !ok {
		return Timing{}, jobhost.Invalid("cron", cronHint, "%q is not a cron expression", expr)
	}
	t := Timing{cron: parsed, expr: strings.Join(strings.Fields(expr), " "), zone: location, wild: hoursAreWild(expr)}
	if t.cron.Next(time.Unix(0, 0).UTC()).IsZero() {
		return Timing{}, jobhost.Invalid("cron", "", "%q names a day that never comes", expr)
	}
	return t, nil
}

const cronHint = `write five fields, minute hour day month weekday, such as "30 2 * * mon-fri"`

// searchYears is how far ahead ticks are searched for: the 29th of February can be
// eight years away.
const searchYears = 10

// parser accepts POSIX expressions with names, steps, and L, W and # for days. As
// everywhere but in newer versions of the library, a tick is due if the day of the
// month or the day of the week fits, if both are given.
func parser() cron.Parser {
	return cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
		cron.Descriptor | cron.Extended | cron.DowOrDom).WithMaxSearchYears(searchYears)
}

// checkExpression refuses what the library accepts but a manifest expresses
// elsewhere.
func checkExpression(expr string) error {
	switch fields := strings.Fields(expr); {
	case len(expr) > maxExpression:
		return jobhost.Invalid("cron", "", "an expression of %d bytes is longer than %d", len(expr), maxExpression)
	case len(fields) == 0:
		return jobhost.Invalid("cron", cronHint, "the expression is empty")
	case strings.Contains(expr, "TZ="):
		return jobhost.Invalid("cron", "name the time zone in timezone", "%q is not a cron expression", expr)
	case strings.HasPrefix(fields[0], "@every"):
		return jobhost.Invalid("cron", `write every = "10m" instead of cron`, "%q is not a cron expression", expr)
	case strings.HasPrefix(fields[0], "@"):
		if len(fields) > 1 {
			return jobhost.Invalid("cron", cronHint, "%q is not a cron expression", expr)
		}
	case len(fields) != 5:
		return jobhost.Invalid("cron", cronHint, "%q has %d fields, not 5", expr, len(fields))
	}
	for _, r := range expr {
		if r != ' ' && (r < '!' || r > '~') {
			return jobhost.Invalid("cron", cronHint, "%q is not a cron expression", expr)
		}
	}
	return nil
}

// hoursAreWild reports whether the hours field begins with a star.
func hoursAreWild(expr string) bool {
	fields := strings.Fields(expr)
	if len(fields) == 1 {
		return strings.EqualFold(fields[0], "@hourly")
	}
	return strings.HasPrefix(fields[1], "*") || strings.HasPrefix(fields[1], "?")
}

// loadZone loads a time zone by its name in the IANA database.
func loadZone(name string) (*time.Location, error) {
	const hint = `use a name of the IANA database, such as "Europe/Berlin", or "UTC"`
	if name == "" {
		return time.UTC, nil
	}
	if name == "Local" { // it would mean something else on another machine
		return nil, jobhost.Invalid("timezone", hint, "%q depends on the machine", name)
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, jobhost.Invalid("timezone", hint, "%q is not a time zone", name)
	}
	return location, nil
}

// Cron returns the expression; empty = an interval.
func (t *Timing) Cron() string { return t.expr }

// Interval returns the interval; 0 = an expression.
func (t *Timing) Interval() time.Duration { return t.every }

// Zone returns the time zone in which ticks are shown.
func (t *Timing) Zone() *time.Location {
	if t.zone == nil {
		return time.UTC
	}
	return t.zone
}

// String identifies the ticks: timings with the same text have the same ticks, as
// long as the time zone database doesn't change.
func (t *Timing) String() string {
	if t.every > 0 {
		return "every " + jobhost.Duration(t.every).String()
	}
	return "cron " + t.expr + " " + t.Zone().String()
}

// Next returns the first tick after a time, in the schedule's time zone; the zero
// time = none within ten years.
func (t *Timing) Next(after time.Time) time.Time {
	switch {
	case t.every > 0:
		return multipleAfter(after, t.every)
	case t.cron != nil:
		return t.nextLocal(after.In(t.zone))
	}
	return time.Time{}
}

// multipleAfter returns the first multiple of every, in whole seconds since 1970,
// after a time.
func multipleAfter(after time.Time, every time.Duration) time.Time {
	seconds := int64(every / time.Second)
	n := after.Unix() / seconds
	if after.Unix()%seconds < 0 {
		n-- // before 1970, where division rounds up
	}
	return time.Unix((n+1)*seconds, 0).UTC()
}

// Upcoming returns the next n ticks after a time.
func (t *Timing) Upcoming(after time.Time, n int) []time.Time {
	ticks := make([]time.Time, 0, n)
	for len(ticks) < n {
		if after = t.Next(after); after.IsZero() {
			break
		}
		ticks = append(ticks, after)
	}
	return ticks
}
