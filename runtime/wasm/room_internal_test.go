package wasm

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

// TestRoom: what is in the room at one time never takes more than it has, and what takes more is in it alone.
func TestRoom(t *testing.T) {
	t.Parallel()
	r := newRoom()
	sizes := []int64{0, 1, roomBytes / 8, roomBytes / 3, roomBytes/2 + 1, roomBytes, 5 * roomBytes}
	var inside, most atomic.Int64
	var loads sync.WaitGroup
	for range 8 {
		loads.Go(func() {
			for n := range 200 {
				size := sizes[n%len(sizes)]
				leave, err := r.enter(t.Context(), size)
				if err != nil {
					t.Error(err)
					return
				}
				takes := min(size, roomBytes)
				now := inside.Add(takes)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				inside.Add(-takes)
				leave()
			}
		})
	}
	loads.Wait()
	if got := most.Load(); got > roomBytes {
		t.Errorf("%d MiB at one time", got>>20)
	}
}

// TestRoomIsLeft: one that gives up waiting takes no room.
func TestRoomIsLeft(t *testing.T) {
	t.Parallel()
	r := newRoom()
	leave, err := r.enter(t.Context(), roomBytes)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.enter(ctx, 1); err == nil {
		t.Error("there was room beside what takes all")
	}
	leave()
	if _, err := r.enter(t.Context(), roomBytes); err != nil {
		t.Error(err)
	}
}
