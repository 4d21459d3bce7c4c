package snapshot

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sealed is the content of an image in a memfd that can no longer be written or
// resized. Its zero value holds nothing.
type sealed struct {
	fd      int    // as long as the image's memory, its end being a hole
	content []byte // mapped read-only; resets copy from it
}

// seals reject every later change, even through mappings and by any holder of
// the descriptor.
const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL

// seal puts content, which is zero outside some spans, at the start of a memfd of
// the given size.
func seal(content []byte, used []span, size int) (s sealed, err error) {
	if size == 0 {
		return sealed{fd: -1}, nil
	}
	if s.fd, err = files.take(size); err != nil {
		return s, fmt.Errorf("create a memfd: %w", err)
	}
	if err := s.fill(content, used, size); err != nil {
		files.giveUp(s.fd)
		return s, err
	}
	return s, nil
}

// createMemfd creates a file that can't be executed, which some systems insist
// on (vm.memfd_noexec) and those before Linux 6.3 don't know.
func createMemfd() (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("snapshot", flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		return unix.MemfdCreate("snapshot", flags)
	}
	return fd, err
}

// fill writes the content, gives the file its size, seals it and maps it.
func (s *sealed) fill(content []byte, used []span, size int) error {
	for _, u := range used {
		if err := s.write(content, u.start, min(u.end, len(content))); err != nil {
			return fmt.Errorf("write the memfd: %w", err)
		}
	}
	if err := unix.Ftruncate(s.fd, int64(size)); err != nil { // it may be larger, or smaller
		return fmt.Errorf("size the memfd: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(s.fd), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("seal the memfd: %w", err)
	}
	if len(content) == 0 {
		return nil
	}
	// Private although it is only read: before Linux 6.7 a file sealed against
	// writing could not be mapped shared at all.
	p, err := unix.MmapPtr(s.fd, 0, nil, uintptr(len(content)), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("map the memfd: %w", err)
	}
	s.content = unsafe.Slice((*byte)(p), len(content))
	return nil
}

// write writes the content between two positions, except zeros.
func (s *sealed) write(content []byte, at, end int) error {
	for at < end {
		block := content[at:min(at+PageBytes, end)]
		if isZero(block) { // stays a hole
			at += len(block)
			continue
		}
		n, err := unix.Pwrite(s.fd, block, int64(at))
		if err != nil {
			return err
		}
		at += n
	}
	return nil
}

// free releases the memory; mappings of it stay valid.
func (s *sealed) free() error {
	if s.fd < 0 {
		return nil
	}
	if err := unix.Close(s.fd); err != nil {
		return fmt.Errorf("close the memfd: %w", err)
	}
	if len(s.content) == 0 {
		return nil
	}
	if err := unix.MunmapPtr(unsafe.Pointer(&s.content[0]), uintptr(len(s.content))); err != nil {
		return fmt.Errorf("unmap the memfd: %w", err)
	}
	s.content = nil
	return nil
}
