package snapshot

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// area is a mapping of the process.
type area struct {
	from, to uint64
	line     string
}

func areas(t *testing.T) (all []area) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		a := area{line: line}
		if _, err := fmt.Sscanf(line, "%x-%x", &a.from, &a.to); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(line, "ffffffff") { // the kernel's own
			all = append(all, a)
		}
	}
	return all
}

// placeOf returns where a memory is.
func placeOf(m *Memory) area {
	all := m.backing.(*mapping).all
	return area{from: address(all), to: address(all) + uint64(len(all))}
}

// TestFarApart: nothing but linear memories is within reach of one, and a small overrun of one hits no other.
func TestFarApart(t *testing.T) {
	t.Parallel()
	const reach = 8 << 30
	image := ones(t, 3)
	var places []area
	var heap [][]byte
	for n := range 200 {
		limit := uint64(64 << 20)
		if n%3 == 0 {
			limit = 1 << 20
		}
		m := testMemory(t, limit, image, bestMethod())
		m.Reallocate(uint64(image.Size()) + PageBytes)[image.Size()] = 1
		places = append(places, placeOf(m))
		heap = append(heap, make([]byte, 1<<20)) // a busy heap among them
		if n%50 == 0 {
			runtime.GC()
		}
	}
	foreign := 0
	for _, a := range areas(t) {
		if a.from >= zoneStart && a.to <= zoneEnd {
			continue // of these memories, or those of other tests
		}
		foreign++
		for _, p := range places {
			if a.to+reach > p.from && a.from < p.to+reach {
				t.Fatalf("the memory at %x-%x has a neighbour: %s", p.from, p.to, a.line)
			}
		}
	}
	if foreign < 10 {
		t.Error("only", foreign, "mappings were looked at")
	}
	for n, p := range places {
		for _, other := range places[:n] {
			if p.from < other.to+zoneGap && other.from < p.to+zoneGap {
				t.Fatalf("the memories at %x-%x and %x-%x are close to each other", p.from, p.to, other.from, other.to)
			}
		}
	}
	runtime.KeepAlive(heap)
}

// testZone is a zone of its own behind that of the process's memories.
func testZone(t *testing.T, size uint64) *zone {
	t.Helper()
	from := zoneEnd + 1<<34
	if size > 1<<34 {
		t.Fatal("it would reach what isn't its")
	}
	return newZone(from, from+size)
}

func unmap(t *testing.T, p unsafe.Pointer, size int) {
	t.Helper()
	if err := unix.MunmapPtr(p, uintptr(size)); err != nil {
		t.Error(err)
	}
}

// TestZone takes and gives back places, one of which something else has, until there are no more.
func TestZone(t *testing.T) { // not parallel: others would use the same addresses
	const size, stride = zoneUnit, zoneUnit + zoneGap
	z := testZone(t, 3*stride)
	taken, err := mapNothing(z.start, PageBytes, unix.MAP_FIXED_NOREPLACE)
	if err != nil {
		t.Fatal(err)
	}
	defer unmap(t, taken, PageBytes)

	reserve := func() (unsafe.Pointer, uint64) {
		t.Helper()
		p, err := z.reserve(size)
		if err != nil {
			t.Fatal(err)
		}
		return p, uint64(uintptr(p)) - z.start
	}
	first, at := reserve()
	if at != stride {
		t.Errorf("the first is at %x, want it behind what was there", at)
	}
	second, at := reserve()
	if at != 2*stride {
		t.Errorf("the second is at %x", at)
	}
	third, at := reserve()
	if at < 3*stride {
		t.Errorf("the third is at %x, where there is no room", at)
	}
	unmap(t, third, size)
	z.giveBack(uint64(uintptr(third)), size)
	unmap(t, first, size)
	z.giveBack(uint64(uintptr(first)), size)
	again, at := reserve()
	if at != stride {
		t.Errorf("what was given back is not used again: it is at %x", at)
	}
	unmap(t, again, size)
	unmap(t, second, size)
}

// TestNoZone: where there are no such addresses, as on systems with 39 bits, memories are where the kernel likes.
func TestNoZone(t *testing.T) {
	t.Parallel()
	const beyond = 1 << 60
	z := newZone(beyond, beyond+1<<40)
	for range 2 {
		p, err := z.reserve(PageBytes)
		if err != nil {
			t.Fatal(err)
		}
		unmap(t, p, PageBytes)
	}
	if z.next != beyond+2*(zoneUnit+zoneGap) || len(z.free[PageBytes]) != 1 { // and what is there for good
		t.Errorf("it goes on at %x with %v", z.next, z.free)
	}
}

// TestZoneHammer takes and gives back from many goroutines.
func TestZoneHammer(t *testing.T) {
	t.Parallel()
	z := newZone(zoneStart, zoneEnd) // nothing is mapped there by this one
	var mu sync.Mutex                // protects taken
	taken := map[uint64]bool{}
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			size := (1 + w%2) * PageBytes
			for range 1000 {
				at, ok := z.take(size)
				mu.Lock()
				if !ok || taken[at] {
					t.Errorf("%x is taken twice", at)
				}
				taken[at] = true
				mu.Unlock()
				mu.Lock()
				delete(taken, at)
				mu.Unlock()
				z.giveBack(at, size)
			}
		})
	}
	workers.Wait()
	if most := zoneStart + 8*(zoneUnit+zoneGap); z.next > most {
		t.Errorf("it goes on at %x: places are not used again", z.next)
	}
}
