package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		limit uint64
		ok    bool
	}{
		{0, false},
		{PageBytes - 1, false},
		{PageBytes, true},
		{3*PageBytes + 1, true},
		{MaxBytes, true},
		{MaxBytes + PageBytes, false},
		{1 << 63, false},
	} {
		t.Run(fmt.Sprint(tc.limit), func(t *testing.T) {
			t.Parallel()
			m, err := New(tc.limit, nil)
			if (err == nil) != tc.ok {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				return
			}
			defer m.Close()
			whole := tc.limit - tc.limit%PageBytes
			if m.Reallocate(whole+PageBytes) != nil || !m.Refused() {
				t.Error("it grew beyond its limit")
			}
			if whole > 1<<30 && bestMethod() == ByCopy {
				return // it would be written in full
			}
			b := m.Reallocate(whole)
			if uint64(len(b)) != whole || cap(b) != len(b) {
				t.Fatalf("%d bytes, cap %d", len(b), cap(b))
			}
			b[0], b[len(b)-1] = 1, 1
			if got := reset(t, m); got.Grown || m.Refused() {
				t.Errorf("after the reset: %+v, refused %v", got, m.Refused())
			}
			if b[0] != 0 || b[len(b)-1] != 0 {
				t.Error("the ends were not put back")
			}
		})
	}
}

func TestGrow(t *testing.T) {
	t.Parallel()
	for _, method := range methods() {
		t.Run(method.String(), func(t *testing.T) {
			t.Parallel()
			content := bytes.Repeat([]byte{9}, 2*PageBytes)
			m := testMemory(t, 8*PageBytes, testImage(t, content), method)
			if got := m.Reallocate(PageBytes); len(got) != len(content) {
				t.Errorf("smaller than the image: %d bytes", len(got))
			}
			before := &m.Bytes()[0]
			b := m.Reallocate(5 * PageBytes)
			if method != ByCopy && &b[0] != before {
				t.Error("the memory moved")
			}
			if len(b) != 5*PageBytes || !bytes.Equal(b[:len(content)], content) || !isZeros(b[len(content):]) {
				t.Error("the content changed by growing")
			}
			for at := range b {
				b[at] = 1
			}
			if got := reset(t, m); !got.Grown {
				t.Errorf("stats: %+v", got)
			}
			if !bytes.Equal(b[:len(content)], content) || !isZeros(b[len(content):]) {
				t.Error("not put back")
			}
			if len(m.Bytes()) != 5*PageBytes {
				t.Error("the size changed by the reset")
			}
		})
	}
}

func TestOutgrown(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, tc := range []struct {
		name               string
		image, size, limit int
		want               bool
	}{
		{"as it was", 2 * mib, 2 * mib, 64 * mib, false},
		{"a small one may grow a little", mib, 5 * mib, 64 * mib, false},
		{"but no more", mib, 5*mib + PageBytes, 64 * mib, true},
		{"a large one to twice its size", 10 * mib, 20 * mib, 64 * mib, false},
		{"but no more", 10 * mib, 20*mib + PageBytes, 64 * mib, true},
		{"a quarter of the room", 40 * mib, 46 * mib, 64 * mib, false},
		{"but no more", 40 * mib, 46*mib + PageBytes, 64 * mib, true},
		{"hardly any room", mib, mib + PageBytes, mib + 2*PageBytes, true},
		{"no room", mib, mib, mib, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := testMemory(t, uint64(tc.limit), testImage(t, make([]byte, tc.image)), bestMethod())
			m.Reallocate(uint64(tc.size))
			if got := m.Outgrown(); got != tc.want {
				t.Errorf("outgrown: %v", got)
			}
			// The same without an image, where the first size counts.
			m = testMemory(t, uint64(tc.limit), nil, bestMethod())
			m.Reallocate(uint64(tc.image))
			m.Reallocate(uint64(tc.size))
			if got := m.Outgrown(); got != tc.want {
				t.Errorf("without an image: %v", got)
			}
		})
	}
}

// TestNotShared looks at what one memory sees of another one's writes.
func TestNotShared(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte{5}, PageBytes)
	i := testImage(t, content)
	for _, method := range methods() {
		a, b := testMemory(t, 2*PageBytes, i, method), testMemory(t, 2*PageBytes, i, method)
		for at := range a.Bytes() {
			a.Bytes()[at] = 6
		}
		if !bytes.Equal(b.Bytes(), content) {
			t.Errorf("%v: another memory sees it", method)
		}
		if !bytes.Equal(testMemory(t, 2*PageBytes, i, method).Bytes(), content) {
			t.Errorf("%v: a later memory sees it", method)
		}
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	for _, method := range methods() {
		t.Run(method.String(), func(t *testing.T) {
			t.Parallel()
			m, err := newMemory(4*PageBytes, testImage(t, bytes.Repeat([]byte{5}, PageBytes)), method)
			if err != nil {
				t.Fatal(err)
			}
			if m.Allocate(0, 0) != m {
				t.Error("the first module gets other memory")
			}
			second := m.Allocate(0, 0)
			if got := second.Reallocate(PageBytes); got != nil {
				t.Error("a second module gets memory")
			}
			second.Free()

			view := m.Bytes()
			m.Free()
			m.Free()
			if view[0] != 5 {
				t.Error("a view changed when the module was closed")
			}
			if m.Reallocate(2*PageBytes) != nil {
				t.Error("it grew after its module was closed")
			}
			if _, err := m.Reset(); !errors.Is(err, ErrClosed) {
				t.Errorf("reset: %v", err)
			}
			for range 2 {
				if err := m.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
			if m.Bytes() != nil || m.Reallocate(PageBytes) != nil {
				t.Error("there is memory left")
			}
		})
	}
}

// TestAllocations counts those of the whole process, so it runs alone.
func TestAllocations(t *testing.T) {
	for _, method := range methods() {
		m := testMemory(t, 1<<20, testImage(t, make([]byte, 1<<20)), method)
		reset(t, m)
		allocs := testing.AllocsPerRun(100, func() {
			for at := 0; at < len(m.Bytes()); at += 5 * page {
				m.Bytes()[at]++
			}
			reset(t, m)
		})
		if allocs > 0 {
			t.Errorf("%v: %v allocations", method, allocs)
		}
	}
}
