package snapshot

import "os"

// plain is a memory in a Go slice, for systems other than Linux: a reset copies
// everything.
type plain struct {
	image  *Image
	limit  int // bytes
	buffer []byte
}

func newPlain(limit int, image *Image) *plain {
	return &plain{image: image, limit: limit}
}

// grow implements [backing]. The memory may move.
func (p *plain) grow(size int) []byte {
	if size > cap(p.buffer) {
		// Half as much again, so that growing page by page doesn't copy everything each time.
		grown := make([]byte, size, min(max(size, cap(p.buffer)/2*3), p.limit))
		if p.buffer == nil {
			copy(grown, p.image.content())
		}
		copy(grown, p.buffer)
		p.buffer = grown
	}
	// What lies beyond the old length was never used, so it is zero.
	p.buffer = p.buffer[:size]
	return p.buffer
}

// used implements [backing].
func (p *plain) used(size int) []span { return all(p.buffer[:size]) }

// reset implements [backing].
func (p *plain) reset() (Stats, error) {
	n := copy(p.buffer, p.image.content())
	clear(p.buffer[n:])
	return Stats{Private: len(p.buffer) / os.Getpagesize(), Method: ByCopy}, nil
}

// free implements [backing]; the garbage collector does the rest.
func (p *plain) free() error {
	p.buffer = nil
	return nil
}
