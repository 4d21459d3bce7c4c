package schedule

import (
	"context"
	"testing"
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
