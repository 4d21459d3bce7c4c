package snapshot

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The PAGEMAP_SCAN ioctl: see Documentation/admin-guide/mm/pagemap.rst and
// include/uapi/linux/fs.h of Linux. golang.org/x/sys doesn't have it yet.
const (
	pagemapScan = 3<<30 | scanArgBytes<<16 | 'f'<<8 | 16 // _IOWR('f', 16, struct pm_scan_arg)

	scanArgBytes = 96

	pageIsFile    = 1 << 2 // of a file or shared
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
	pageIsZero    = 1 << 5 // the one page of zeros that all readers share
)

// scanArg is struct pm_scan_arg.
type scanArg struct {
	size, flags           uint64
	start, end, walkEnd   uint64
	vec, vecLen, maxPages uint64
	inverted, mask, anyOf uint64
	returned              uint64
}

// region is struct page_region.
type region struct{ start, end, categories uint64 }

const (
	maxSpans   = 256          // found by one call; more need another one
	mapEntries = 2 * maxSpans // read by one call: every second page may be a span
)

// finder finds the pages of a memory that are not the image's: those written since it was mapped or dropped, even if
// they were swapped out, and those after the image that were only read. It holds buffers that the kernel writes to,
// which must not move, so it is on the heap.
type finder struct {
	page    int // size in bytes
	arg     scanArg
	regions [maxSpans]region
	entries [8 * mapEntries]byte
	spans   [maxSpans]span
}

// finders holds unused finders.
var finders = sync.Pool{New: func() any { return &finder{page: os.Getpagesize()} }}

func acquireFinder() *finder { return finders.Get().(*finder) }
func (f *finder) release()   { finders.Put(f) }

// find returns the first spans of private pages of b, and how many bytes were
// searched; those of the shared zero page are marked as zero. The spans are
// valid until the next call.
func (f *finder) find(fd int, method Method, b []byte) ([]span, int, error) {
	if method == ByScan {
		return f.scan(fd, b)
	}
	return f.read(fd, b)
}

// scan asks the kernel for the spans.
func (f *finder) scan(fd int, b []byte) ([]span, int, error) {
	base := address(b)
	f.arg = scanArg{
		size: scanArgBytes, start: base, end: base + uint64(len(b)),
		vec: uint64(uintptr(unsafe.Pointer(&f.regions[0]))), vecLen: maxSpans,
		// Not of a file, and present or swapped. Which of the two isn't
		// returned, so that neighbours join.
		inverted: pageIsFile, mask: pageIsFile,
		anyOf: pageIsPresent | pageIsSwapped, returned: pageIsFile | pageIsZero,
	}
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pagemapScan, uintptr(unsafe.Pointer(&f.arg)))
	if errno != 0 {
		return nil, 0, fmt.Errorf("scan the page map: %w", errno)
	}
	searched := f.arg.walkEnd - base
	if n > maxSpans || f.arg.walkEnd <= base || searched > uint64(len(b)) {
		return nil, 0, fmt.Errorf("scan the page map: %d regions in %d of %d bytes", n, searched, len(b))
	}
	for i, r := range f.regions[:n] {
		if r.categories&pageIsFile != 0 || r.start < base || r.end > f.arg.walkEnd {
			return nil, 0, fmt.Errorf("scan the page map: a region of %x at %x to %x", r.categories, r.start, r.end)
		}
		f.spans[i] = span{int(r.start - base), int(r.end - base), r.categories&pageIsZero != 0}
	}
	return f.spans[:n], int(searched), nil
}

// Bits of an entry of /proc/self/pagemap. It doesn't say which pages are the
// shared zero page; they are restored like others.
const (
	entryPresent = 1 << 63
	entrySwapped = 1 << 62
	entryFile    = 1 << 61
)

// read reads the page map.
func (f *finder) read(fd int, b []byte) ([]span, int, error) {
	first := address(b) / uint64(f.page)
	pages := min(len(b)/f.page, mapEntries)
	n, err := unix.Pread(fd, f.entries[:8*pages], int64(8*first))
	if err != nil || n != 8*pages {
		return nil, 0, fmt.Errorf("read the page map: %d bytes of %d: %w", n, 8*pages, err)
	}
	return f.decode(f.entries[:n]), pages * f.page, nil
}

// decode joins the private pages among at most mapEntries into spans.
func (f *finder) decode(entries []byte) []span {
	found := f.spans[:0]
	for i := 0; i < len(entries); i += 8 {
		entry := binary.NativeEndian.Uint64(entries[i:])
		if entry&(entryPresent|entrySwapped) == 0 || entry&entryFile != 0 {
			continue
		}
		at := i / 8 * f.page
		if last := len(found) - 1; last >= 0 && found[last].end == at {
			found[last].end += f.page
			continue
		}
		found = append(found, span{start: at, end: at + f.page})
	}
	return found
}

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }
