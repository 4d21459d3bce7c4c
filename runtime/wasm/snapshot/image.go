package snapshot

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// ErrClosed is returned for an image or a memory that was closed.
var ErrClosed = errors.New("closed")

// Image is the content of a linear memory at one moment. It is immutable,
// shared by all memories made from it, and safe for concurrent use.
type Image struct {
	size   int    // bytes of the memory
	stored sealed // its content, without trailing zeros

	mu     sync.Mutex // protects the rest
	users  int        // memories, plus the image itself until it is closed
	closed bool
}

// NewImage copies the content of a memory, whose length must be a multiple of
// [PageBytes]. The memory must not change during the call.
func NewImage(content []byte) (*Image, error) { return newImage(content, all(content)) }

// span is a range of bytes.
type span struct {
	start, end int
	zero       bool // known to be zero
}

// all returns the span of a whole memory.
func all(content []byte) []span { return []span{{end: len(content)}} }

// newImage is NewImage for content that is zero outside some spans, which are in
// order. Only these are read: reading what was never used would make the kernel
// provide it, page by page.
func newImage(content []byte, used []span) (*Image, error) {
	if len(content)%PageBytes != 0 || uint64(len(content)) > MaxBytes {
		return nil, fmt.Errorf("make an image: %d bytes are no size of a linear memory", len(content))
	}
	stored, err := seal(content[:significant(content, used)], used, len(content))
	if err != nil {
		return nil, fmt.Errorf("make an image of %d bytes: %w", len(content), err)
	}
	return &Image{size: len(content), stored: stored, users: 1}, nil
}

// significant returns how much of a memory is to be stored: everything except
// trailing zeros, in whole pages of the operating system.
func significant(content []byte, used []span) int {
	page := min(os.Getpagesize(), PageBytes)
	for _, s := range slices.Backward(used) {
		for n := s.end; n > s.start && !s.zero; n -= page {
			if !isZero(content[n-page : n]) {
				return n
			}
		}
	}
	return 0
}

// zeros is a page of linear memory that is never written.
var zeros [PageBytes]byte

// isZero reports whether all bytes are zero; there may be at most PageBytes.
func isZero(b []byte) bool { return string(b) == string(zeros[:len(b)]) }

// Size returns the size in bytes of the memory that the image was made from, a
// multiple of [PageBytes].
func (i *Image) Size() int {
	if i == nil {
		return 0
	}
	return i.size
}

// Close releases the image. Memories made from it stay valid and can be reset;
// shared resources are freed with the last of them. It may be called again.
func (i *Image) Close() error {
	i.mu.Lock()
	again := i.closed
	i.closed = true
	i.mu.Unlock()
	if again {
		return nil
	}
	return i.leave()
}

// join adds a user.
func (i *Image) join() error {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return fmt.Errorf("use the image: %w", ErrClosed)
	}
	i.users++
	return nil
}

// leave removes a user, and frees everything with the last.
func (i *Image) leave() error {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	i.users--
	last := i.users == 0
	i.mu.Unlock()
	if !last {
		return nil
	}
	if err := i.stored.free(); err != nil {
		return fmt.Errorf("free an image: %w", err)
	}
	return nil
}

// content returns the stored bytes, which zeros follow. They must not be written.
func (i *Image) content() []byte {
	if i == nil {
		return nil
	}
	return i.stored.content
}
