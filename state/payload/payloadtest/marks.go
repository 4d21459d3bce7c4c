package payloadtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jobhost/jobhost/state/payload"
)

// SetMark implements [payload.Marker].
func (m *Memory) SetMark(ctx context.Context, name string, text []byte) error {
	if err := payload.CheckName(name); err != nil {
		return err
	}
	return m.do(ctx, payload.Put, func() { m.marks[name] = slices.Clone(text) })
}

// Mark implements [payload.Marker].
func (m *Memory) Mark(ctx context.Context, name string) (text []byte, err error) {
	there := false
	err = m.do(ctx, payload.Get, func() { text, there = m.marks[name] })
	if err == nil && !there {
		err = payload.ErrNotFound
	}
	return slices.Clone(text), err
}

// testMarks: a mark is what was set last, and no object.
func testMarks(t *testing.T, h Harness) {
	s := h.Open(t)
	marks, ok := s.(payload.Marker)
	if !ok {
		t.Fatal("the store keeps no marks")
	}
	if _, err := marks.Mark(t.Context(), "owner-01020304"); !errors.Is(err, payload.ErrNotFound) {
		t.Errorf("a mark that was never set: %v", err)
	}
	for _, text := range []string{"first", "", "last"} {
		if err := marks.SetMark(t.Context(), "owner-01020304", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := marks.Mark(t.Context(), "owner-01020304"); err != nil || string(got) != text {
			t.Errorf("got %q, %v, want %q", got, err, text)
		}
	}
	if _, err := marks.Mark(t.Context(), "owner-01020305"); !errors.Is(err, payload.ErrNotFound) {
		t.Errorf("another mark: %v", err)
	}
	for _, bad := range []string{"", "../x", "a/b", "A"} {
		if err := marks.SetMark(t.Context(), bad, nil); err == nil {
			t.Errorf("%q is the name of a mark", bad)
		}
	}
	if keys, err := s.List(t.Context(), "", 10); err != nil || len(keys) != 0 {
		t.Errorf("the list has %v, %v", keys, err)
	}
	if h.Again != nil {
		s = h.Again(t, s)
		if got, err := s.(payload.Marker).Mark(t.Context(), "owner-01020304"); err != nil || string(got) != "last" {
			t.Errorf("after a restart: %q, %v", got, err)
		}
	}
	if h.Gone != nil {
		gone := h.Gone(t).(payload.Marker)
		if _, err := gone.Mark(t.Context(), "owner-01020304"); err == nil || errors.Is(err, payload.ErrNotFound) {
			t.Errorf("a server that is gone: %v", err)
		}
		if err := gone.SetMark(t.Context(), "owner-01020304", nil); err == nil {
			t.Error("a server that is gone keeps marks")
		}
	}
}
