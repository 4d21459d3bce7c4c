package state_test

import (
	"runtime"
	"testing"

	"github.com/jobhost/jobhost/state"
)

// TestReadReplayIsGone: once it was read, what a subscription began with takes next to
// nothing any more. Not parallel: it looks at the memory of all.
func TestReadReplayIsGone(t *testing.T) {
	f := setup(t, 1000)
	var batch []state.State
	for task := range 1000 {
		for _, tag := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			s := of(task, tag, 1)
			s.Version = 1
			batch = append(batch, s)
		}
	}
	f.Put(batch...)
	const readers = 10
	held := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) //nolint:gosec // it fits
	}
	before := held()
	var subs []*state.Subscription
	for range readers {
		sub := f.subscribe()
		for e := range sub.Events() {
			if e.Sentinel {
				break
			}
		}
		subs = append(subs, sub)
	}
	if each := (held() - before) / readers; each > 200_000 {
		t.Errorf("a subscription that has read 10,000 states holds %d bytes", each)
	}
	runtime.KeepAlive(subs)
}
