package snapshot

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func newBacking(limit int, image *Image, method Method) (backing, error) {
	if method == ByCopy {
		return newPlain(limit, image), nil
	}
	return reserve(limit, image, method)
}

// mapping is a memory in an address range of its own, as large as it may become.
type mapping struct {
	all    []byte // the reservation
	open   int    // how much of it is usable; the rest is inaccessible
	image  *Image
	method Method
	pages  int // the page map's descriptor

	// vain counts the private pages that resets since the last drop have
	// checked and found unchanged.
	vain int
	// patience multiplies how many of them are tolerated: see [mapping.judge].
	patience int
	// dropped is how many pages were private before the last drop, until the
	// next reset shows how many of them came back.
	dropped int
}

// reserve maps an image at the start of a reservation. The zeros after its content are not part of the file: the kernel
// would keep a page of the file for each of them that a guest reads, for as long as the image exists.
func reserve(limit int, image *Image, method Method) (*mapping, error) {
	p, err := memories.reserve(limit)
	if err != nil {
		return nil, fmt.Errorf("reserve address space: %w", err)
	}
	m := &mapping{all: unsafe.Slice((*byte)(p), limit), open: image.Size(), image: image, method: method, pages: pagemap().fd, patience: 1}
	content := len(image.content())
	if content > 0 {
		_, err = unix.MmapPtr(image.stored.fd, 0, p, uintptr(content), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	}
	if err == nil && m.open > content {
		err = unix.Mprotect(m.all[content:m.open], unix.PROT_READ|unix.PROT_WRITE)
	}
	if err != nil {
		_ = m.free() // the other error says more
		return nil, fmt.Errorf("map the image: %w", err)
	}
	return m, nil
}

// grow implements [backing].
func (m *mapping) grow(size int) []byte {
	if size > m.open {
		if err := unix.Mprotect(m.all[m.open:size], unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return nil // out of memory that the system allows to commit
		}
		m.open = size
	}
	return m.all[:size:size]
}

// used implements [backing]. With an image, pages that are not private may be the image's.
func (m *mapping) used(size int) []span {
	b := m.all[:size]
	if m.method == ByDrop || m.image.Size() > 0 {
		return all(b)
	}
	f := acquireFinder()
	defer f.release()
	var used []span
	for at := 0; at < len(b); {
		found, n, err := f.find(m.pages, m.method, b[at:])
		if err != nil {
			return all(b)
		}
		for _, s := range found {
			used = append(used, span{at + s.start, at + s.end, s.zero})
		}
		at += n
	}
	return used
}

// free implements [backing].
func (m *mapping) free() error {
	p := unsafe.Pointer(unsafe.SliceData(m.all))
	if err := unix.MunmapPtr(p, uintptr(len(m.all))); err != nil {
		return fmt.Errorf("unmap: %w", err)
	}
	memories.giveBack(uint64(uintptr(p)), len(m.all))
	m.all, m.open = nil, 0
	return nil
}

const (
	// keptPages is how many pages a memory keeps private across a reset: 16 MiB
	// of 4 KiB. Beyond that it drops all of them.
	//
	// A job that writes the same pages each time, including its reset, measured
	// by BenchmarkReset in a virtual machine where a fault costs 2.5 to 5 µs:
	//
	//	pages     3        40       200      1,000    4,000    10,000
	//	copied    0.8 µs   5.9 µs   29 µs    0.5 ms   2.8 ms   4.7 ms
	//	dropped   11.5 µs  108 µs   540 µs   3.2 ms   13 ms    35 ms
	//
	// So there, dropping never pays off for pages that are needed again. Where a fault costs a
	// fifth of that, as it may without a hypervisor, both break even at a few thousand pages,
	// and about as much may be spent on one instance.
	keptPages = 4096
	// faultCopies is how many pages can be compared or copied in the time of
	// one fault: 20 to 40 on the machine above, 8 if the pages are not in the
	// cache.
	faultCopies = 16
	// mostPatience bounds how long a drop that didn't pay off postpones the next.
	mostPatience = 64
)

// reset implements [backing].
//
// A page that is copied back stays private, and the next reset checks it again.
// That is cheap, while dropping it costs a fault when it is next written. So
// pages are kept as long as runs write them.
func (m *mapping) reset() (Stats, error) {
	if m.method == ByDrop {
		return m.drop()
	}
	f := acquireFinder()
	defer f.release()
	stats := Stats{Method: m.method}
	b := m.all[:m.open]
	for at := 0; at < len(b); {
		found, n, err := f.find(m.pages, m.method, b[at:])
		if err != nil {
			return m.drop() // slower, but has no prerequisites
		}
		for _, r := range found {
			// Only after the image: there it was read. Within the image, the
			// kernel may have found written zeros and merged them (KSM).
			if r.zero && at+r.start >= len(m.image.content()) {
				continue
			}
			stats.Private += (r.end - r.start) / f.page
			if stats.Private > keptPages {
				return m.drop()
			}
			stats.Written += m.restore(at+r.start, at+r.end)
		}
		at += n
	}
	if m.judge(stats) {
		return m.drop()
	}
	return stats, nil
}

// judge reports whether the private pages should be dropped, all at once: when
// checking them in vain has cost as much as faulting them in again would.
// Whatever later runs do, either choice was then wrong by at most a factor of
// two. But some runs write what a page already contained, or alternate between
// pages. If a drop brought little, because the next run needed most of the pages
// again, the next drop is postponed twice as long.
func (m *mapping) judge(stats Stats) bool {
	if m.dropped > 0 {
		if 3*stats.Private > m.dropped {
			m.patience = min(2*m.patience, mostPatience)
		} else {
			m.patience = 1
		}
		m.dropped = 0
	}
	m.vain += stats.Private - stats.Written
	if m.vain <= m.patience*faultCopies*stats.Private {
		return false
	}
	m.dropped = stats.Private
	return true
}

// restore restores the bytes between two positions and returns how many pages
// were different.
func (m *mapping) restore(from, to int) (written int) {
	content, page := m.image.content(), os.Getpagesize()
	for at := from; at < to; at += page {
		is, was := m.all[at:at+page], zeros[:page]
		if at < len(content) {
			was = content[at : at+page]
		}
		if string(is) != string(was) {
			copy(is, was)
			written++
		}
	}
	return written
}

// drop makes the kernel drop all private pages: the image's reappear, followed
// by zeros. One call for all is no slower than one for each range.
func (m *mapping) drop() (Stats, error) {
	if m.open > 0 {
		if err := unix.Madvise(m.all[:m.open], unix.MADV_DONTNEED); err != nil {
			return Stats{}, fmt.Errorf("drop the private pages: %w", err)
		}
	}
	m.vain = 0
	return Stats{Method: ByDrop}, nil
}
