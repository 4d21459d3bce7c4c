package schedule

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/host/scope"
)

// TestAlarm rings the alarm of the operating system; it is real time that passes.
func TestAlarm(t *testing.T) {
	t.Parallel()
	root := scope.New(context.Background(), "test")
	alarm, err := systemClock{}.Alarm(root)
	if err != nil {
		t.Fatal(err)
	}
	rings := func(when string, at time.Time) {
		t.Helper()
		began := time.Now()
		if err := alarm.Set(at); err != nil {
			t.Fatal(err)
		}
		select {
		case <-alarm.Rings():
			if early := time.Until(at); early > time.Millisecond {
				t.Errorf("%s: it rang %v early", when, early)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it did not ring within %v", when, time.Since(began))
		}
	}
	rings("soon", time.Now().Add(20*time.Millisecond))
	rings("now", time.Now())
	rings("in the past", time.Now().Add(-time.Hour))
	rings("long ago", time.Unix(-5, 0))
	if err := alarm.Set(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	rings("sooner than it was set", time.Now().Add(10*time.Millisecond))
	for _, never := range []time.Time{{}, time.Now().Add(time.Hour)} {
		if err := alarm.Set(never); err != nil {
			t.Fatal(err)
		}
		select {
		case <-alarm.Rings():
			t.Errorf("it rang when it was set to %v", never)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := alarm.Close(); err != nil {
		t.Error(err)
	}
	if report, _ := root.Join(context.Background()); report.Primary != nil { // its goroutine has ended
		t.Error(report.Primary)
	}
}

// TestClockOf rings the alarm of a clock that is far ahead of the machine's.
func TestClockOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ahead = 1000 * time.Hour
		clock := ClockOf(func() time.Time { return time.Now().Add(ahead) })
		alarm, err := clock.Alarm(nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if got := clock.Now().Sub(began); got != ahead {
			t.Errorf("it is ahead by %v", got)
		}
		for _, wait := range []time.Duration{-time.Hour, 0, time.Second, 10 * time.Minute} {
			began, at := time.Now(), clock.Now().Add(wait)
			want := max(wait, 0)
			for rings := 0; ; rings++ {
				if err := alarm.Set(at); err != nil {
					t.Fatal(err)
				}
				<-alarm.Rings()
				if !clock.Now().Before(at) {
					break
				}
				if rings > 10 {
					t.Fatal("it rings all the time")
				}
			}
			if took := time.Since(began); took != want {
				t.Errorf("it rang after %v, want %v", took, want)
			}
		}
		if err := alarm.Close(); err != nil {
			t.Error(err)
		}
	})
}
