package snapshot

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// finding returns the methods that look for private pages.
func finding() []Method {
	var all []Method
	for _, m := range methods() {
		if m < ByDrop {
			all = append(all, m)
		}
	}
	return all
}

// ones makes an image of which no page is zero.
func ones(t testing.TB, pages int) *Image {
	t.Helper()
	return testImage(t, bytes.Repeat([]byte{1}, pages*PageBytes))
}

// touch writes to n pages.
func touch(m *Memory, n int) {
	for i := range n {
		m.Bytes()[2*i*page]++
	}
}

// wantStats resets a memory and compares what that did.
func wantStats(t *testing.T, m *Memory, want Stats) {
	t.Helper()
	if got := reset(t, m); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWorkingSet(t *testing.T) {
	t.Parallel()
	for _, method := range finding() {
		t.Run(method.String(), func(t *testing.T) {
			t.Parallel()
			m := testMemory(t, 8*PageBytes, ones(t, 2), method)
			wantStats(t, m, Stats{Method: method})
			// What is only read is not private.
			m.Reallocate(4 * PageBytes)
			_ = isZeros(m.Bytes()[2*PageBytes:])
			_ = bytes.Count(m.Bytes()[:2*PageBytes], []byte{1})
			read := reset(t, m)
			if method == ByScan && read.Private > 0 {
				t.Errorf("after reading: %+v", read)
			}
			if _, err := m.backing.(*mapping).drop(); err != nil {
				t.Fatal(err)
			}
			// Pages that are written each time stay.
			for range 10 * faultCopies {
				touch(m, 3)
				wantStats(t, m, Stats{Written: 3, Private: 3, Method: method, Grown: true})
			}
			// Of six that once were, half are looked at in vain.
			touch(m, 6)
			wantStats(t, m, Stats{Written: 6, Private: 6, Method: method, Grown: true})
			for range 2 * faultCopies {
				touch(m, 3)
				wantStats(t, m, Stats{Written: 3, Private: 6, Method: method, Grown: true})
			}
			touch(m, 3)
			wantStats(t, m, Stats{Method: ByDrop, Grown: true})
			touch(m, 3)
			wantStats(t, m, Stats{Written: 3, Private: 3, Method: method, Grown: true})
			if _, err := m.backing.(*mapping).drop(); err != nil {
				t.Fatal(err)
			}
			wantStats(t, m, Stats{Method: method, Grown: true})
		})
	}
}

// TestManyPages writes more than is kept, scattered and in one piece.
func TestManyPages(t *testing.T) {
	t.Parallel()
	for _, method := range finding() {
		t.Run(method.String(), func(t *testing.T) {
			t.Parallel()
			size := 3 * keptPages * page
			m := testMemory(t, uint64(size), nil, method)
			m.Reallocate(uint64(size))
			touch(m, 1000) // more than one call finds
			wantStats(t, m, Stats{Written: 1000, Private: 1000, Method: method})
			for at := 0; at <= keptPages*page; at += page {
				m.Bytes()[at] = 1
			}
			wantStats(t, m, Stats{Method: ByDrop})
			if !isZeros(m.Bytes()) {
				t.Error("not put back")
			}
		})
	}
}

// TestHugePages lets the kernel back a memory by pages of 2 MiB, if it can.
func TestHugePages(t *testing.T) {
	t.Parallel()
	for _, method := range methods() {
		if method == ByCopy {
			continue // that one has no mapping
		}
		t.Run(method.String(), func(t *testing.T) {
			t.Parallel()
			const size = 8 << 20
			m := testMemory(t, size, ones(t, 1), method)
			b := m.Reallocate(uint64(size))
			if err := unix.Madvise(b[PageBytes:], unix.MADV_HUGEPAGE); err != nil {
				t.Logf("small pages only: %v", err)
			}
			for range 3 {
				_ = isZeros(b[PageBytes:]) // perhaps the huge page of zeros
				for at := 100; at < len(b); at += 1 << 20 {
					b[at] = 2
				}
				stats := reset(t, m)
				if !isZeros(b[PageBytes:]) || b[100] != 1 {
					t.Errorf("not put back: %+v", stats)
				}
			}
		})
	}
}

// TestPageMapFails lets the search for private pages fail.
func TestPageMapFails(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, method := range finding() {
		for _, fd := range []int{-1, int(null.Fd())} {
			m := testMemory(t, PageBytes, ones(t, 1), method)
			m.backing.(*mapping).pages = fd
			touch(m, 2)
			wantStats(t, m, Stats{Method: ByDrop})
			if m.Bytes()[0] != 1 {
				t.Errorf("%v: not put back", method)
			}
			if probe(fd, method) == nil {
				t.Errorf("%v: the probe sees nothing wrong", method)
			}
		}
	}
}

func TestSealed(t *testing.T) {
	t.Parallel()
	fd := ones(t, 1).stored.fd
	if got, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil || got&seals != seals {
		t.Errorf("seals %x, %v", got, err)
	}
	if got, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || got&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %x, %v: children inherit it", got, err)
	}
	if _, err := unix.Pwrite(fd, []byte{2}, 0); err == nil {
		t.Error("it can be written")
	}
}

// TestTenThousand makes many large memories, as many as a host may have.
func TestTenThousand(t *testing.T) {
	t.Parallel()
	i := ones(t, 1)
	for n := range 10_000 {
		m := testMemory(t, 64<<20, i, bestMethod())
		if n%1000 != 0 {
			continue
		}
		if got := mappings(t, m); got != 2 {
			t.Errorf("%d mappings", got)
		}
		m.Reallocate(2 * PageBytes)[PageBytes] = 1
		if got := mappings(t, m); got != 3 {
			t.Errorf("grown: %d mappings", got)
		}
	}
}

// mappings counts those that lie in the reservation of a memory.
func mappings(t *testing.T, m *Memory) (n int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	all := m.backing.(*mapping).all
	first := address(all)
	for line := range strings.Lines(string(maps)) {
		start, _, _ := strings.Cut(line, "-")
		at, err := strconv.ParseUint(start, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if at >= first && at < first+uint64(len(all)) {
			n++
		}
	}
	return n
}

// TestZerosTakeNothing: what a guest looks at or writes behind the content of its
// image takes no memory of the image, which outlives it.
func TestZerosTakeNothing(t *testing.T) {
	t.Parallel()
	const pages = 16
	content := make([]byte, pages*PageBytes)
	content[5] = 1
	image := testImage(t, content)
	stored := func() int64 {
		var info unix.Stat_t
		if err := unix.Fstat(image.stored.fd, &info); err != nil {
			t.Fatal(err)
		}
		return info.Blocks * 512
	}
	before := stored()
	for _, method := range methods() {
		m, err := newMemory(pages*PageBytes, image, method)
		if err != nil {
			t.Fatal(err)
		}
		for at := PageBytes; at < len(m.Bytes()); at += page {
			if m.Bytes()[at] != 0 {
				t.Errorf("%v: byte %d is not zero", method, at)
			}
			m.Bytes()[at] = byte(at / PageBytes % 2)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if after := stored(); after != before {
		t.Errorf("the image takes %d bytes instead of %d", after, before)
	}
}
