package snapshot

import (
	"errors"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// Nothing else has a reason to be between these addresses. Go's heap begins at 0xc000000000 on amd64 and
	// 0x4000000000 on arm64, what the race detector knows of it ends at 0x340000000000, programs are loaded at
	// 0x555555554000 or above (0xaaaaaaaaa000 on arm64), and the kernel places what is left from the top downwards.
	zoneStart uint64 = 0x4000_0000_0000
	zoneEnd   uint64 = 0x5400_0000_0000

	// zoneGap lies between memories, so that a small overrun hits nothing. Distances of 8 GiB would cost each
	// instance two more page table pages.
	zoneGap = 64 << 20
	// zoneUnit is what a page table page maps: a memory that begins at a multiple needs the fewest.
	zoneUnit = 2 << 20
	// zoneTries is how many places are tried when something else is there.
	zoneTries = 8
)

// zone is an address range reserved for linear memories. Code with a faulty bounds check reaches 8 GiB at most: a base
// with a 32-bit index and a 32-bit offset. It finds no structures of the host there, no stacks and no code.
type zone struct {
	start, end uint64
	settled    sync.Once

	mu   sync.Mutex       // protects the rest
	next uint64           // from here on it was never used
	free map[int][]uint64 // places that were freed, by the size of what was there
}

func newZone(start, end uint64) *zone {
	return &zone{start: start, end: end, next: start, free: map[int][]uint64{}}
}

// memories is the zone of all linear memories of the process.
var memories = newZone(zoneStart, zoneEnd)

// reserve reserves addresses: in the zone, or where the kernel chooses if that is impossible, as with smaller address
// spaces.
func (z *zone) reserve(size int) (unsafe.Pointer, error) {
	z.settled.Do(z.settle)
	for range zoneTries {
		at, ok := z.take(size)
		if !ok {
			break
		}
		p, err := mapNothing(at, size, unix.MAP_FIXED_NOREPLACE)
		switch {
		case err == nil && uint64(uintptr(p)) == at:
			return p, nil
		case err == nil: // Linux before 4.17 treats it as a hint
			_ = unix.MunmapPtr(p, uintptr(size)) // it was mapped just now
		case !errors.Is(err, unix.EEXIST):
			z.giveBack(at, size)
			return mapNothing(0, size, 0)
		}
	}
	return mapNothing(0, size, 0)
}

// settle permanently maps a page at the start of the zone. This makes the kernel keep the upper page tables, two of
// which it would otherwise create and free with each memory that is the only one there: 4 µs of 20.
func (z *zone) settle() {
	page := os.Getpagesize()
	if at, ok := z.take(page); ok {
		// If that fails it is slower.
		_, _ = unix.MmapPtr(-1, 0, place(at), uintptr(page), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE|unix.MAP_FIXED_NOREPLACE)
	}
}

// mapNothing reserves addresses without access; at 0 the kernel chooses.
func mapNothing(at uint64, size, flags int) (unsafe.Pointer, error) {
	return unix.MmapPtr(-1, 0, place(at), uintptr(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|flags)
}

func place(at uint64) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(nil), at) }

// take returns a place that is not in use by a memory, if there is one.
func (z *zone) take(size int) (at uint64, ok bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if free := z.free[size]; len(free) > 0 {
		at = free[len(free)-1]
		z.free[size] = free[:len(free)-1]
		return at, true
	}
	need := uint64(size+zoneUnit-1)/zoneUnit*zoneUnit + zoneGap
	if z.end-z.next < need {
		return 0, false
	}
	at = z.next
	z.next += need
	return at, true
}

// giveBack returns a place that is no longer mapped. Those elsewhere are the kernel's.
func (z *zone) giveBack(at uint64, size int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if at >= z.start && at < z.next {
		z.free[size] = append(z.free[size], at)
	}
}
