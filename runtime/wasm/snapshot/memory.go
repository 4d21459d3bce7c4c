package snapshot

import (
	"fmt"
	"math"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Memory is the linear memory of one module instance. It implements
// [experimental.MemoryAllocator] and [experimental.LinearMemory], so it is
// passed to wazero with [experimental.WithMemoryAllocator].
//
// Like its module, it is not safe for concurrent use. Its creator must close
// it: see [Memory.Free] for why wazero doesn't.
type Memory struct {
	backing backing // nil = closed
	image   *Image  // nil = zeros
	limit   uint64  // bytes that a run may use, excluding what earlier ones grew
	room    uint64  // bytes that exist, including what earlier runs may leave
	most    uint64  // bytes that this run may use
	bytes   []byte  // the guest's view
	first   int     // its initial size
	taken   bool    // a module has it
	ended   bool    // the module was closed
	refused bool    // growth was refused, since the last reset or Forgive
	shrinks bool    // the next call of Reallocate is to shrink it
}

var (
	_ experimental.MemoryAllocator = (*Memory)(nil)
	_ experimental.LinearMemory    = (*Memory)(nil)
)

// backing stores the bytes of a memory.
type backing interface {
	// grow returns the first size bytes, new ones being zero, or nil if there
	// is no room. The size is never less than before.
	grow(size int) []byte
	// used returns the spans of the first size bytes that may be nonzero, in
	// order; the rest is zero.
	used(size int) []span
	// reset restores all bytes.
	reset() (Stats, error)
	// free releases everything.
	free() error
}

// Prepare opens what resets need from the system. Otherwise the first memory does; a process that will lose the
// right to open files must call it before.
func Prepare() { bestMethod() }

// New creates a memory of at most limit bytes, rounded down to whole pages,
// which starts as a copy of the image; nil means an empty one. The limit is
// between [PageBytes] and [MaxBytes], and not less than the image. It is what
// each run may use, in addition to what resets left of earlier runs, see
// [Memory.Outgrown].
func New(limit uint64, image *Image) (*Memory, error) {
	return newMemory(limit, image, bestMethod())
}

func newMemory(limit uint64, image *Image, method Method) (*Memory, error) {
	limit -= limit % PageBytes
	switch {
	case limit == 0 || limit > MaxBytes || limit > math.MaxInt:
		return nil, fmt.Errorf("make a memory: a limit of %d bytes is not between %d and %d", limit, PageBytes, uint64(MaxBytes))
	case limit < uint64(image.Size()):
		return nil, fmt.Errorf("make a memory: a limit of %d bytes is less than the image's %d", limit, image.Size())
	}
	if err := image.join(); err != nil {
		return nil, fmt.Errorf("make a memory: %w", err)
	}
	room := min(limit+limit/4/PageBytes*PageBytes, MaxBytes, math.MaxInt/PageBytes*PageBytes)
	b, err := newBacking(int(room), image, method)
	if err != nil {
		_ = image.leave() // the other error says more
		return nil, fmt.Errorf("make a memory of at most %d bytes: %w", limit, err)
	}
	m := &Memory{backing: b, image: image, limit: limit, room: room, most: limit, first: image.Size()}
	m.bytes = b.grow(m.first)
	return m, nil
}

// Allocate returns the memory itself: its limit and the image decide, not the
// module's request. It serves one module: a second one, instantiated with the
// same context by mistake, gets no memory, and wazero panics.
func (m *Memory) Allocate(_, _ uint64) experimental.LinearMemory {
	if m.taken {
		return none{}
	}
	m.taken = true
	return m
}

// none is a linear memory without room.
type none struct{}

func (none) Reallocate(uint64) []byte { return nil }
func (none) Free()                    {}

// Reallocate makes the memory at least size bytes long and returns it. It does
// not move, unless it is backed by a slice. A memory is never smaller than its
// image: a module that declares a smaller one gets that size at once, since
// wazero uses the length of what is returned. It returns nil, and records the
// refusal, over the limit or if the system has no room.
func (m *Memory) Reallocate(size uint64) []byte {
	if m.shrinks {
		m.bytes = m.bytes[:m.first:m.first]
		return m.bytes
	}
	if size <= uint64(len(m.bytes)) {
		return m.bytes
	}
	if m.ended || m.backing == nil || size > m.most {
		m.refused = true
		return nil
	}
	grown := m.backing.grow(int(size))
	if grown == nil {
		m.refused = true
		return nil
	}
	if m.first == 0 {
		m.first = len(grown)
	}
	m.bytes = grown
	return grown
}

// Refused reports whether growth was refused since the last reset, or Forgive.
// wazero doesn't ask for more than the module's own declared maximum.
func (m *Memory) Refused() bool { return m.refused }

// Forgive clears Refused, for memories that serve another run without a reset.
func (m *Memory) Forgive() { m.refused = false }

// Bytes returns the guest's memory itself, not a copy. It is valid until the
// memory grows or is closed.
func (m *Memory) Bytes() []byte { return m.bytes }

// Image makes an image of the current content. How long that takes depends on
// how much of the memory was used, not on its size.
func (m *Memory) Image() (*Image, error) {
	if m.backing == nil {
		return nil, fmt.Errorf("make an image: %w", ErrClosed)
	}
	return newImage(m.bytes, m.backing.used(len(m.bytes)))
}

// Reset restores the content of the image, followed by zeros. The size stays
// until [Memory.Shrink]. Views of the memory stay valid. After an error, the
// content is undefined and the instance must be replaced.
func (m *Memory) Reset() (Stats, error) {
	if m.ended || m.backing == nil {
		return Stats{}, fmt.Errorf("reset a memory: %w", ErrClosed)
	}
	m.refused = false
	stats, err := m.backing.reset()
	if err != nil {
		return Stats{}, fmt.Errorf("reset a memory: %w", err)
	}
	left := len(m.bytes) - m.first
	m.most = min(m.limit+uint64(left), m.room)
	stats.Grown = left > 0
	return stats, nil
}

// Shrink restores the initial size of a memory that was reset, so that the next
// run can't see that others grew it, and doesn't fault in new pages where
// theirs are. wazero has no call for it; but when a memory grows, wazero uses
// the length of what its allocator returns, even if that is less. memory must
// be that of the module that uses this one, with no call into it in progress.
// It returns false, and the size stays, if the memory can't grow any more
// because of the maximum that its module declares.
func (m *Memory) Shrink(memory api.Memory) bool {
	if !m.Grown() {
		return true
	}
	m.shrinks = true
	_, ok := memory.Grow(1)
	m.shrinks = false
	if ok {
		m.most = m.limit
	}
	return ok
}

// tolerated is how much a small memory may grow before it counts as outgrown:
// what one job grew and wrote is restored page by page, and sooner or later a
// replacement, at 0.1 to 0.4 ms, is cheaper.
const tolerated = 4 << 20

// Outgrown reports whether the instance should be replaced: the memory has grown to more than
// twice its initial size (and by more than 4 MiB), or by more than a quarter of what it could
// grow. The guest forgets with each reset that it grew, and grown memory takes address space,
// so this can't go on indefinitely. Up to that point the next run may grow as far as the first
// could.
func (m *Memory) Outgrown() bool {
	left := len(m.bytes) - m.first
	quarter := (int(m.limit) - m.first) / 4
	return left > min(max(m.first, tolerated), quarter, int(m.room-m.limit))
}

// Grown reports whether the memory is larger than initially.
func (m *Memory) Grown() bool { return len(m.bytes) > m.first }

// Free implements [experimental.LinearMemory]: the module was closed. It
// releases nothing, for two reasons in wazero 1.12. A guest that exits closes
// its own module from within a host call, while the guest is on the stack; and
// the module's api.Memory still points to these bytes. A late read by a host
// call would then crash the process, or see what another guest wrote. Besides,
// wazero doesn't call it when an instantiation fails.
func (m *Memory) Free() { m.ended = true }

// Close releases the memory. No call into its module may be in progress, and
// neither its api.Memory nor any view may be used afterwards. It may be called
// again.
func (m *Memory) Close() error {
	if m.backing == nil {
		return nil
	}
	err := m.backing.free()
	m.backing, m.bytes = nil, nil
	if err == nil {
		err = m.image.leave()
	}
	if err != nil {
		return fmt.Errorf("close a memory: %w", err)
	}
	return nil
}
