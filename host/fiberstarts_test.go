package host_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
)

// TestReloadsBeforeFiberEnds: the last reload decides which fibers there are, also
// when one that an earlier reload has ended is not over yet.
func TestReloadsBeforeFiberEnds(t *testing.T) {
	t.Parallel()
	spec := func(label string) []jobhost.FiberSpec {
		return []jobhost.FiberSpec{{ID: "a", Worker: "test", Entry: "spin", Labels: map[string]string{"is": label}}}
	}
	for _, tt := range []struct {
		name string
		last []jobhost.FiberSpec
		want string // label of the fiber that is there at last; empty = none
	}{
		{"removed", nil, ""},
		{"changed again", spec("third"), "third"},
		{"changed back", spec("first"), "first"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t)
			cfg.CancelGrace = time.Second // the guest doesn't look whether it is interrupted
			cfg.Fibers.Start = spec("first")
			var next atomic.Pointer[[]jobhost.FiberSpec]
			workers := slices.Clone(cfg.Workers)
			cfg.Reread = func(context.Context) (host.Update, error) {
				return host.Update{Workers: workers, Fibers: *next.Load()}, nil
			}
			h, _ := run(t, cfg)
			first := awaitFiber(t, h, func(f *jobhost.Fiber) bool { return f.Status == jobhost.FiberRunning })
			for _, specs := range [][]jobhost.FiberSpec{spec("second"), tt.last} {
				next.Store(&specs)
				reload(t, h, "", "test:unchanged:1")
			}
			if tt.want != "" {
				// On a slow machine the second may have been there in between.
				awaitFiber(t, h, func(f *jobhost.Fiber) bool { return f.CreatedAt.After(first.CreatedAt) && f.Labels["is"] == tt.want })
				return
			}
			awaitFiber(t, h, func(f *jobhost.Fiber) bool { return f.Status == jobhost.FiberKilled })
			if _, err := h.StartFiber(t.Context(), spec("mine")[0]); err != nil {
				t.Errorf("somebody else has started it: %v", err)
			}
		})
	}
}

// awaitFiber waits until the fiber "a" is as it is wanted.
func awaitFiber(t *testing.T, h *hosttest.Host, want func(*jobhost.Fiber) bool) jobhost.Fiber {
	t.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for {
		f, err := h.Fiber(t.Context(), "a")
		if err == nil && want(&f) {
			return f
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the fiber is %+v, %v", f, err)
		}
	}
}
