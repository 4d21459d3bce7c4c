package main

import (
	"testing"
	"time"
)

func TestWhen(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		ago   time.Duration
		on    string // a terminal
		plain string
	}{
		{"now", 0, "now", "2026-02-03T15:04:05Z"},
		{"seconds", 59 * time.Second, "59s ago", "2026-02-03T15:03:06Z"},
		{"minutes", 119 * time.Second, "1m ago", "2026-02-03T15:02:06Z"},
		{"hours", 47 * time.Hour, "47h ago", "2026-02-01T16:04:05Z"},
		{"days", 50 * time.Hour, "2d ago", "2026-02-01T13:04:05Z"},
		{"future", -90 * time.Second, "in 1m", "2026-02-03T15:05:35Z"},
		{"a clock that is ahead", -time.Millisecond, "now", "2026-02-03T15:04:05Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := &env{stdout: &stream{terminal: true}, now: func() time.Time { return testTime }}
			if got := e.when(testTime.Add(-test.ago)); got != test.on {
				t.Errorf("on a terminal %q, want %q", got, test.on)
			}
			e.stdout.terminal = false
			if got := e.when(testTime.Add(-test.ago)); got != test.plain {
				t.Errorf("%q, want %q", got, test.plain)
			}
		})
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 10 << 10: "10 KiB", 64 << 20: "64 MiB", 1<<63 - 1: "8 EiB",
	} {
		if got := size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
