package snapshot

import (
	"os"
	"testing"
)

// page is the size of a page of the operating system.
var page = os.Getpagesize()

// methods returns those that work here, the best first.
func methods() []Method {
	var all []Method
	for m := bestMethod(); m <= ByCopy; m++ {
		all = append(all, m)
	}
	return all
}

// testImage makes an image that is closed with the test.
func testImage(t testing.TB, content []byte) *Image {
	t.Helper()
	i, err := NewImage(content)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

// testMemory makes a memory that is closed with the test.
func testMemory(t testing.TB, limit uint64, image *Image, method Method) *Memory {
	t.Helper()
	m, err := newMemory(limit, image, method)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// reset resets a memory.
func reset(t testing.TB, m *Memory) Stats {
	t.Helper()
	stats, err := m.Reset()
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

// isZeros is isZero for any length.
func isZeros(b []byte) bool {
	for len(b) > PageBytes {
		if !isZero(b[:PageBytes]) {
			return false
		}
		b = b[PageBytes:]
	}
	return isZero(b)
}
