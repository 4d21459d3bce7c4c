package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
)

func mustCron(t testing.TB, expr, zone string) Timing {
	t.Helper()
	timing, err := Cron(expr, zone)
	if err != nil {
		t.Fatal(err)
	}
	return timing
}

// TestClockChanges says what becomes of ticks on the days on which clocks are
// put forward or back.
func TestClockChanges(t *testing.T) {
	t.Parallel()
	const newYork, lordHowe, saoPaulo, apia = "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia"
	tests := []struct {
		name, expr, zone, after string
		want                    []string
	}{
		{"left out: at the change", "30 2 * * *", newYork, "2026-03-07T12:00:00-05:00", []string{
			"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00",
		}},
		{"left out several times: once", "*/15 2 * * *", newYork, "2026-03-08T00:30:00-05:00", []string{
			"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00", "2026-03-09T02:15:00-04:00",
		}},
		{"left out and due at the change anyway: once", "30 2,3 * * *", newYork, "2026-03-08T00:30:00-05:00", []string{
			"2026-03-08T03:00:00-04:00", "2026-03-08T03:30:00-04:00", "2026-03-09T02:30:00-04:00",
		}},
		{"the end of what was left out is a tick: once", "0 2,3 * * *", newYork, "2026-03-08T00:30:00-05:00", []string{
			"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00", "2026-03-09T03:00:00-04:00",
		}},
		{"shown twice: the first time", "30 1 * * *", newYork, "2026-10-31T12:00:00-04:00", []string{
			"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00",
		}},
		{"asked within what is shown again", "30 1,2 * * *", newYork, "2026-11-01T01:10:00-05:00", []string{
			"2026-11-01T02:30:00-05:00", "2026-11-02T01:30:00-05:00",
		}},
		{"every hour: no hour is left out", "0 * * * *", newYork, "2026-03-08T00:30:00-05:00", []string{
			"2026-03-08T01:00:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-08T04:00:00-04:00",
		}},
		{"every hour: both hours count", "@hourly", newYork, "2026-11-01T00:30:00-04:00", []string{
			"2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00",
		}},
		{"every half hour: both hours count", "*/30 * * * *", newYork, "2026-11-01T01:20:00-04:00", []string{
			"2026-11-01T01:30:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:00:00-05:00",
		}},
		{"half an hour is left out", "15 2 * * *", lordHowe, "2026-10-03T12:00:00+10:30", []string{
			"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00",
		}},
		{"half an hour is shown twice", "45 1 * * *", lordHowe, "2026-04-04T12:00:00+11:00", []string{
			"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30",
		}},
		{"a day without midnight", "0 0 * * *", saoPaulo, "2018-11-02T12:00:00-03:00", []string{
			"2018-11-03T00:00:00-03:00", "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00",
		}},
		{"a day that is left out", "0 12 * * *", apia, "2011-12-29T11:00:00-10:00", []string{
			"2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00",
		}},
		{"day of month or week", "0 12 13 * 5", "UTC", "2026-03-08T00:00:00Z", []string{
			"2026-03-13T12:00:00Z", "2026-03-20T12:00:00Z",
		}},
		{"leap days over a century", "0 0 29 2 *", "", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		{"the last day of a month", "0 0 L * *", "", "2026-02-01T00:00:00Z", []string{"2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"}},
		{"the second Tuesday", "0 0 * * tue#2", "", "2026-02-01T00:00:00Z", []string{"2026-02-10T00:00:00Z", "2026-03-10T00:00:00Z"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			timing := mustCron(t, tt.expr, tt.zone)
			after, err := time.Parse(time.RFC3339, tt.after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tick := range timing.Upcoming(after, len(tt.want)) {
				got = append(got, tick.Format(time.RFC3339))
			}
			if strings.Join(got, " ") != strings.Join(tt.want, " ") {
				t.Errorf("got  %v\nwant %v", got, tt.want)
			}
		})
	}
}

func TestTimingRefused(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, expr, zone, want string }{
		{"empty", "", "", "cron: the expression is empty"},
		{"spaces", "   ", "", "cron: the expression is empty"},
		{"four fields", "* * * *", "", `cron: "* * * *" has 4 fields, not 5`},
		{"seconds", "* * * * * *", "", `cron: "* * * * * *" has 6 fields, not 5`},
		{"out of range", "60 * * * *", "", `cron: "60 * * * *" is not a cron expression`},
		{"words", "at noon on some day", "", "is not a cron expression"},
		{"zone in it", "CRON_TZ=Asia/Tokyo 0 5 * * *", "", "is not a cron expression"},
		{"zone and nothing", "TZ=", "", "is not a cron expression"},
		{"interval", "@every 1h", "", "is not a cron expression"},
		{"unknown word", "@fortnightly", "", "is not a cron expression"},
		{"word and more", "@daily 5", "", "is not a cron expression"},
		{"never", "0 0 30 2 *", "", "names a day that never comes"},
		{"line break", "0 0\n* * *", "", "is not a cron expression"},
		{"long", strings.Repeat("1,", 200) + "1 * * * *", "", "is longer than 256"},
		{"zone", "0 0 * * *", "Mars/Olympus", `timezone: "Mars/Olympus" is not a time zone`},
		{"path as zone", "0 0 * * *", "../../etc/passwd", "is not a time zone"},
		{"zone of the machine", "0 0 * * *", "Local", "depends on the machine"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Cron(tt.expr, tt.zone)
			e, ok := errors.AsType[*jobhost.Error](err)
			if !ok || e.Code != jobhost.CodeInvalid {
				t.Fatalf("got %v", err)
			}
			if text := e.Field + ": " + e.Message; !strings.Contains(text, tt.want) {
				t.Errorf("got %s, want %s", text, tt.want)
			}
		})
	}
	for _, d := range []time.Duration{0, -time.Hour, time.Millisecond, 1500 * time.Millisecond, MaxEvery + time.Second} {
		if _, err := Every(d); jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("every %v: got %v", d, err)
		}
	}
}

func TestEvery(t *testing.T) {
	t.Parallel()
	timing, err := Every(90 * time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[string]string{
		"1969-12-31T23:00:00Z":      "1970-01-01T00:00:00Z",
		"1970-01-01T00:00:00Z":      "1970-01-01T01:30:00Z",
		"2026-01-01T00:00:00.5Z":    "2026-01-01T01:30:00Z",
		"2026-01-01T01:29:59Z":      "2026-01-01T01:30:00Z",
		"2026-01-01T03:30:00+02:00": "2026-01-01T03:00:00Z",
	} {
		at, _ := time.Parse(time.RFC3339, after)
		if got := timing.Next(at).Format(time.RFC3339); got != want {
			t.Errorf("after %s: got %s, want %s", after, got, want)
		}
	}
}

// minutes returns the ticks of an expression by looking at every minute of a
// period, the plain way. hours and minutes are the sets that the expression
// has; wild says that the hours are *.
func minutes(from, until time.Time, zone *time.Location, hours, mins map[int]bool, wild bool) (ticks []time.Time) {
	shown := map[int64]bool{} // times of day that were dealt with, in minutes as if they were UTC
	face := func(at time.Time) int64 {
		_, offset := at.Zone()
		return (at.Unix() + int64(offset)) / 60
	}
	fits := func(at time.Time) bool { return hours[at.Hour()] && mins[at.Minute()] }
	last := from.Add(-26 * time.Hour).In(zone) // so that what clocks have shown is known
	for at := last.Add(time.Minute); !at.After(until); last, at = at, at.Add(time.Minute) {
		due := false
		if wild {
			due = fits(at)
		} else {
			// What clocks should have shown between the last minute and this one.
			_, before := last.Zone()
			_, now := at.Zone()
			for left := time.Duration(now-before) * time.Second; left > 0; left -= time.Minute {
				skipped := at.Add(-left).UTC().Add(time.Duration(now) * time.Second)
				due = due || fits(skipped)
				shown[face(skipped)] = true
			}
			due = due || fits(at) && !shown[face(at)]
			shown[face(at)] = true
		}
		if due && at.After(from) {
			ticks = append(ticks, at)
		}
	}
	return ticks
}

var zones = []string{
	"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu",
	"Africa/Casablanca", "Antarctica/Troll", "Asia/Gaza",
}

// TestTicksGoForward looks at the ends of leap years that lie beyond the tables of zones, where bounds are that are none: each
// tick comes after the one before.
func TestTicksGoForward(t *testing.T) {
	t.Parallel()
	for _, zone := range zones {
		for _, expr := range []string{"0 8 * * *", "15 3,8,14 * * *", "*/15 0-23 * * *", "0 0 * * *"} {
			timing := mustCron(t, expr, zone)
			for _, year := range []int{2036, 2040} {
				at := time.Date(year, 12, 29, 0, 0, 0, 0, timing.Zone())
				for until := at.AddDate(0, 0, 4); at.Before(until); {
					next := timing.Next(at)
					if d := next.Sub(at); d <= 0 || d > 25*time.Hour {
						t.Fatalf("%s in %s: %v follows %v", expr, zone, next, at)
					}
					at = next
				}
			}
		}
	}
}

// TestTicksProperty compares the ticks of random expressions, around the
// changes of random zones, with those found by looking at every minute.
func TestTicksProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		zoneName := rapid.SampledFrom(zones).Draw(rt, "zone")
		zone, err := time.LoadLocation(zoneName)
		if err != nil {
			rt.Fatal(err)
		}
		from := time.Date(rapid.IntRange(2005, 2040).Draw(rt, "year"), 1, 1, 0, rapid.IntRange(0, 600_000).Draw(rt, "minute"), 0, 0, zone)
		if _, end := from.ZoneBounds(); !end.IsZero() && rapid.Bool().Draw(rt, "at a change") {
			from = end.Add(-time.Duration(rapid.IntRange(-180, 1500).Draw(rt, "before")) * time.Minute)
		}
		from = from.Truncate(time.Minute)
		until := from.Add(30 * time.Hour)
		minute, mins := genField(rt, "minutes", 59)
		hour, hours := genField(rt, "hours", 23)
		timing := mustCron(t, minute+" "+hour+" * * *", zoneName)
		var got []time.Time
		for at := timing.Next(from); !at.After(until); at = timing.Next(at) {
			got = append(got, at)
		}
		want := minutes(from, until, zone, hours, mins, strings.HasPrefix(hour, "*"))
		if !slices.EqualFunc(got, want, time.Time.Equal) {
			at := 0
			for at < min(len(got), len(want)) && got[at].Equal(want[at]) {
				at++
			}
			rt.Fatalf("%s after %v: %d ticks, want %d; they differ at %v", timing.String(), from, len(got), len(want), slices.Concat(got[at:], want[at:])[0])
		}
		n := rapid.IntRange(1, 9).Draw(rt, "n")
		due, before := timing.due(from, until, n)
		kept := want[max(len(want)-n, 0):]
		if !slices.EqualFunc(due, kept, time.Time.Equal) || before != len(want)-len(kept) {
			rt.Fatalf("due: got %d and %v, want %d and %v", before, due, len(want)-len(kept), kept)
		}
	})
}

// genField draws a field of an expression and the set of its values.
func genField(rt *rapid.T, label string, most int) (string, map[int]bool) {
	set := map[int]bool{}
	switch rapid.IntRange(0, 2).Draw(rt, label+" as") {
	case 0:
		step := rapid.SampledFrom([]int{1, 2, 5, 7, 15}).Draw(rt, label+" step")
		for i := 0; i <= most; i += step {
			set[i] = true
		}
		if step == 1 {
			return "*", set
		}
		return fmt.Sprintf("*/%d", step), set
	case 1:
		low := rapid.IntRange(0, most).Draw(rt, label+" low")
		high := rapid.IntRange(low, most).Draw(rt, label+" high")
		for i := low; i <= high; i++ {
			set[i] = true
		}
		return fmt.Sprintf("%d-%d", low, high), set
	}
	var parts []string
	for _, n := range rapid.SliceOfN(rapid.IntRange(0, most), 1, 4).Draw(rt, label) {
		set[n] = true
		parts = append(parts, fmt.Sprint(n))
	}
	return strings.Join(parts, ","), set
}

// FuzzCron wants every expression that is taken to have ticks that rise, and
// none to take long.
func FuzzCron(f *testing.F) {
	for _, seed := range []string{
		"30 2 * * *", "*/5 * * * *", "0 0 29 2 *", "0 0 L * *", "15 12 1,15 jan-mar mon-fri", "@daily", "@hourly", "TZ=", "@every 1s",
		"59 23 31 12 7", "0 22-2 * * fri-mon", "0 0 15W * *", "0 0 LW * fri#L", "? ? ? ? ?", "*/0 * * * *", "0-59/99999999999 * * * *",
	} {
		for _, zone := range []string{"", "America/New_York", "Australia/Lord_Howe"} {
			f.Add(seed, zone, int64(1_772_952_000))
		}
	}
	f.Fuzz(func(t *testing.T, expr, zone string, from int64) {
		timing, err := Cron(expr, zone)
		if err != nil {
			return
		}
		const year2500 = 16_725_225_600
		at := time.Unix(from%year2500, 0)
		for range 20 {
			next := timing.Next(at)
			if next.IsZero() {
				return
			}
			if !next.After(at) {
				t.Fatalf("%q in %q: the tick after %v is %v", expr, zone, at, next)
			}
			at = next
		}
	})
}
