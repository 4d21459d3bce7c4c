package jobhost_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
)

func TestAging(t *testing.T) {
	t.Parallel()
	const forever = time.Duration(math.MaxInt64)
	for _, tc := range []struct {
		name       string
		base       jobhost.Priority
		age, aging time.Duration
		want       jobhost.Priority
	}{
		{"low at once", jobhost.Low, 0, time.Minute, jobhost.Low},
		{"low, almost a minute", jobhost.Low, time.Minute - 1, time.Minute, jobhost.Low},
		{"low after a minute", jobhost.Low, time.Minute, time.Minute, jobhost.Normal},
		{"low after two", jobhost.Low, 2 * time.Minute, time.Minute, jobhost.High},
		{"low after three", jobhost.Low, 3 * time.Minute, time.Minute, jobhost.Critical},
		{"low after an age", jobhost.Low, forever, 1, jobhost.Critical},
		{"background after three", jobhost.Background, 3 * time.Minute, time.Minute, jobhost.High},
		{"critical stays", jobhost.Critical, time.Hour, time.Minute, jobhost.Critical},
		{"zero is normal", 0, 0, time.Minute, jobhost.Normal},
		{"off", jobhost.Background, forever, 0, jobhost.Background},
		{"aging below zero is off", jobhost.Low, time.Hour, -time.Minute, jobhost.Low},
		{"the clock went back", jobhost.Low, -time.Hour, time.Minute, jobhost.Low},
		{"not a priority", 77, 0, time.Minute, jobhost.Normal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := tc.base.Effective(tc.age, tc.aging); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAgingProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := jobhost.PriorityAt(rapid.IntRange(-3, 8).Draw(t, "level"))
		age := time.Duration(rapid.Int64().Draw(t, "age"))
		more := age + time.Duration(rapid.Int64Range(0, max(0, math.MaxInt64-max(int64(age), 0))).Draw(t, "more"))
		aging := time.Duration(rapid.Int64().Draw(t, "aging"))
		now, later := base.Effective(age, aging), base.Effective(more, aging)
		if now.Level() < 0 || now.Level() >= jobhost.Levels || now.Level() > base.Level() {
			t.Fatalf("%v became %v", base, now)
		}
		if later.Level() > now.Level() {
			t.Fatalf("%v at %v, but %v at %v", now, age, later, more)
		}
	})
}

func TestPriorityText(t *testing.T) {
	t.Parallel()
	for level, name := range []string{"critical", "high", "normal", "low", "background"} {
		p, err := jobhost.ParsePriority(name)
		if err != nil || p.Level() != level || p.String() != name || jobhost.PriorityAt(level) != p {
			t.Errorf("%s is %v at level %d: %v", name, p, p.Level(), err)
		}
		var back jobhost.Priority
		text, _ := p.MarshalText()
		if err := back.UnmarshalText(text); err != nil || back != p {
			t.Errorf("%s came back as %v: %v", text, back, err)
		}
	}
	if p, err := jobhost.ParsePriority(""); p != jobhost.Normal || err != nil {
		t.Errorf("empty is %v: %v", p, err)
	}
	for _, bad := range []string{"Normal", "2", "urgent", "\x1b[31m"} {
		if _, err := jobhost.ParsePriority(bad); jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func ExamplePriority_Effective() {
	for minutes := range 4 {
		fmt.Println(jobhost.Low.Effective(time.Duration(minutes)*time.Minute, time.Minute))
	}
	// Output:
	// low
	// normal
	// high
	// critical
}
