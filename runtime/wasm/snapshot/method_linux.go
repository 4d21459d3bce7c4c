package snapshot

import (
	"errors"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bestMethod returns the fastest method that works here.
func bestMethod() Method { return pagemap().best }

// openMap is the page map of this process, open for the life of the process.
type openMap struct {
	fd   int // -1 = it cannot be opened
	best Method
}

// pagemap returns the page map, opening it on first use.
var pagemap = sync.OnceValue(func() openMap { return openPageMap("/proc/self/pagemap") })

// openPageMap opens a page map and determines what it can be used for.
func openPageMap(path string) openMap {
	if os.Getpagesize() > PageBytes {
		return openMap{-1, ByCopy} // linear memory must not end within a page
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return openMap{-1, ByDrop}
	}
	for _, method := range []Method{ByScan, ByPagemap} {
		if probe(fd, method) == nil {
			return openMap{fd, method}
		}
	}
	_ = unix.Close(fd) // it was only read
	return openMap{-1, ByDrop}
}

var errOdd = errors.New("the page map is not as expected")

// probe tries a method on three pages, of which the second was written. Kernels
// that only emulate Linux have no such page map, or an empty one.
func probe(fd int, method Method) error {
	page := os.Getpagesize()
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(3*page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	b := unsafe.Slice((*byte)(p), 3*page)
	b[page] = 1
	f := acquireFinder()
	defer f.release()
	found, n, err := f.find(fd, method, b)
	if err == nil && (n != len(b) || len(found) != 1 || found[0] != span{start: page, end: 2 * page}) {
		err = errOdd
	}
	return errors.Join(err, unix.MunmapPtr(p, uintptr(len(b))))
}
