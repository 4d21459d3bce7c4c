package payloadtest

import (
	"testing"

	"github.com/jobhost/jobhost/state/payload"
)

// testCutOff leaves an object in the making, as a process does that is killed: another
// one must see nothing of it, also in lists, and write beside it.
func testCutOff(t *testing.T, h Harness) {
	s := h.Open(t)
	left, other := payload.NewKey(epoch), payload.NewKey(epoch)
	o, err := s.Create(t.Context(), left)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write(content(9 << 20)); err != nil {
		t.Fatal(err)
	}
	again := s
	if h.Again != nil {
		again = h.Again(t, s)
	}
	put(t, again, other, content(100))
	wantNone(t, again, left)
	wantKeys(t, again, other)
	want(t, again, other, content(100))
	o.Abort()
	wantClean(t, h, s)
}

// testLost takes away what was written of an object before its Commit, which must find
// out: what it acknowledges is whole.
func testLost(t *testing.T, h Harness) {
	if h.Lose == nil {
		t.Skip("what is written of an object is with its writer")
	}
	s := h.Open(t)
	key := payload.NewKey(epoch)
	o, err := s.Create(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write(content(9 << 20)); err != nil {
		t.Fatal(err)
	}
	h.Lose(t, s, key)
	if err := o.Commit(); err == nil || payload.Permanent(err) {
		t.Errorf("commit: got %v, want an error that may pass", err)
	}
	o.Abort()
	wantNone(t, s, key)
	wantKeys(t, s)
	wantClean(t, h, s)
}

// testFree asks stores for their free space that know it.
func testFree(t *testing.T, h Harness) {
	s, knows := h.Open(t).(payload.Spacious)
	if !knows {
		return
	}
	if free, err := s.Free(); err != nil || free <= 0 {
		t.Errorf("%d bytes are free, %v", free, err)
	}
}
