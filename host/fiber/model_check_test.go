package fiber_test

import (
	"context"
	"errors"
	"slices"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
)

// now is the status that should show.
func (f *modelFiber) now() jobhost.FiberStatus {
	switch {
	case f.status != "":
		return f.status
	case f.paused:
		return jobhost.FiberPaused
	case f.waits || !f.resting.IsZero():
		return jobhost.FiberStarting
	case f.receives:
		return jobhost.FiberIdle
	}
	return jobhost.FiberRunning
}

// check compares what shows with what should be true.
func (m *model) check(t *rapid.T) {
	synctest.Wait()
	m.calls = slices.DeleteFunc(m.calls, func(c *call) bool {
		select {
		case err := <-c.got:
			got := string(jobhost.CodeOf(err))
			if errors.Is(err, context.Canceled) {
				got = "canceled"
			}
			if !c.known || got != c.want {
				t.Fatalf("a call returned %q: %v; want %q, known: %v", got, err, c.want, c.known)
			}
			c.cancel()
			return true
		default:
			if c.known {
				t.Fatalf("a call waits that should have returned %q", c.want)
			}
			return false
		}
	})
	page, err := m.Fibers(context.Background(), jobhost.FiberFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range page.Fibers {
		want := m.fibers[got.ID]
		if want == nil {
			want = m.past[got.ID]
		}
		switch {
		case want == nil:
			t.Fatalf("there should be no %s: %+v", got.ID, got)
		case got.Status != want.now() || got.Waiting != want.queue || got.Received != want.received ||
			got.Emitted != want.emitted || got.Restarts != want.restarts || got.Entry != want.spec.Entry:
			t.Fatalf("got %+v\nwant %s and %+v", got, want.now(), want)
		}
	}
	known := len(m.past)
	for id := range m.fibers {
		if m.past[id] == nil {
			known++
		}
	}
	if len(page.Fibers) != known {
		t.Fatalf("there are %d fibers, want %d", len(page.Fibers), known)
	}
	if got, want := m.Stats(), (fiber.Stats{Live: m.used(), Waiting: len(m.waiting), Ended: len(m.past)}); got != want {
		t.Fatalf("stats %+v, want %+v", got, want)
	}
	terminated := 0
	m.note(func() {
		for _, ends := range m.terminated {
			terminated += len(ends)
		}
	})
	if terminated != m.runs {
		t.Fatalf("on_terminate ran %d times, want %d", terminated, m.runs)
	}
}
