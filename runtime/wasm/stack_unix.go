//go:build unix

package wasm

import "golang.org/x/sys/unix"

// mapStack returns memory for a stack, outside Go's heap.
func mapStack(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

func unmapStack(b []byte) error { return unix.Munmap(b) }

// releaseStack returns pages to the system. Their content is no longer needed,
// so errors don't matter.
func releaseStack(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }
