//go:build unix

package wasm

import "golang.org/x/sys/unix"

// mapStack returns memory for a stack. It is no part of Go's heap.
func mapStack(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

func unmapStack(b []byte) error { return unix.Munmap(b) }

// releaseStack gives pages back to the system. What was in them is of no use any
// more, so it doesn't matter if that can't be done.
func releaseStack(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }
