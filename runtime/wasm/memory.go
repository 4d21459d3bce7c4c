package wasm

import "github.com/tetratelabs/wazero/experimental"

// memory is the linear memory of one guest. It keeps the worker's limit
// itself, instead of leaving that to wazero, in order to know whether the
// guest asked for more: that tells running out of memory from other traps.
type memory struct {
	limit   uint64 // bytes
	buffer  []byte
	refused bool // growing, since the attempt began
}

var (
	_ experimental.MemoryAllocator = (*memory)(nil)
	_ experimental.LinearMemory    = (*memory)(nil)
)

// Allocate implements [experimental.MemoryAllocator]; a module has one memory.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate returns the memory at its new size, or nil over the limit.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.refused = true
		return nil
	}
	if size > uint64(cap(m.buffer)) {
		// Half as much again, so that growing page by page doesn't copy everything each time.
		room := size
		if m.buffer != nil {
			room = min(max(size, uint64(cap(m.buffer))*3/2), m.limit)
		}
		grown := make([]byte, size, room)
		copy(grown, m.buffer)
		m.buffer = grown
	}
	// What lies beyond the old length was never used, so it is zero.
	m.buffer = m.buffer[:size]
	return m.buffer
}

// Free lets go of the memory.
func (m *memory) Free() { m.buffer = nil }
