package extismabi

import (
	"encoding/binary"
	"runtime"

	"github.com/tetratelabs/wazero/experimental"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// The layout of a kernel's memory, as in kernel.wat.
const (
	usedAt      = 0  // how much of the heap is used
	errorAt     = 4  // address of the error text
	inputAt     = 8  // address of the input; its length follows 4 bytes later
	outputAt    = 16 // address of the output; its length follows 4 bytes later
	heapAt      = 512
	headerBytes = 16
	roomAt      = -16 // of a block, from its data
	lengthAt    = -12
	markAt      = -4
	mark        = 0x6a09e667
)

const pageBytes = 64 << 10

// all returns the kernel's memory, valid until it grows.
func (p *Plugin) all() []byte {
	b, _ := p.memory.Read(0, p.memory.Size())
	return b
}

// word returns an i32 of the kernel's memory.
func word(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }

func setWord(b []byte, at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }

// put makes data the first block and the input of a pristine kernel. It does
// what alloc and input_set would, without two calls into wasm. ok is false if
// there is no memory for it.
func (p *Plugin) put(data []byte) (ok bool) {
	if len(data) == 0 {
		return true
	}
	room := max(uint64(len(data)+7)&^7, 16)
	need, size := heapAt+headerBytes+room, uint64(p.memory.Size())
	if need > size {
		if need > uint64(p.arena.limit) {
			p.arena.refused = true
			return false
		}
		if _, ok := p.memory.Grow(uint32((need - size + pageBytes - 1) / pageBytes)); !ok {
			return false
		}
	}
	const at = heapAt + headerBytes
	b := p.all()
	setWord(b, usedAt, uint32(need-heapAt))
	setWord(b, inputAt, at)
	setWord(b, inputAt+4, uint32(len(data)))
	setWord(b, at+roomAt, uint32(room))
	setWord(b, at+lengthAt, uint32(len(data)))
	setWord(b, at+markAt, at^mark)
	hostcall.Copy(b[at:], data)
	return true
}

// output returns the range that the guest set as its output.
func (p *Plugin) output() []byte {
	b := p.all()
	return within(b, uint64(word(b, outputAt)), uint64(word(b, outputAt+4)))
}

// failure returns the error text that the guest set, and nil if there is none:
// an empty block counts as none.
func (p *Plugin) failure() []byte {
	b := p.all()
	at := uint64(word(b, errorAt))
	if at < heapAt+headerBytes || at > uint64(len(b)) || word(b, int(at)+markAt) != uint32(at)^mark {
		return nil
	}
	return within(b, at, uint64(word(b, int(at)+lengthAt)))
}

// within returns a range of b, or nil if it is not inside b: the kernel and the
// guest, who can overwrite the lengths of its blocks, are not trusted.
func within(b []byte, at, n uint64) []byte {
	if n == 0 || at+n > uint64(len(b)) {
		return nil
	}
	return b[at : at+n]
}

// cleared is how much is cleared before other goroutines, including the garbage collector, get a chance to run.
const cleared = 1 << 20

// clearKernel resets the kernel, at a cost proportional to what was used. A guest can use gigabytes of it with one
// call, which can't be cleared in one go: nothing could interrupt that.
func (p *Plugin) clearKernel() {
	b := p.all()
	b = b[:min(heapAt+int(word(b, usedAt)), len(b))]
	for len(b) > cleared {
		clear(b[:cleared])
		b = b[cleared:]
		runtime.Gosched()
	}
	clear(b)
}

// arena is the memory of one kernel. It enforces the limit itself, to know
// whether the kernel was refused more.
type arena struct {
	limit   int64
	given   experimental.LinearMemory // nil = buffer
	buffer  []byte
	refused bool // to grow, since the attempt began
}

var (
	_ experimental.MemoryAllocator = (*arena)(nil)
	_ experimental.LinearMemory    = (*arena)(nil)
)

// Allocate implements [experimental.MemoryAllocator]; a kernel has one memory.
func (a *arena) Allocate(_, _ uint64) experimental.LinearMemory { return a }

// Reallocate returns the memory at its new size, or nil over the limit.
func (a *arena) Reallocate(size uint64) []byte {
	if size > uint64(a.limit) {
		a.refused = true
		return nil
	}
	if a.given != nil {
		b := a.given.Reallocate(size)
		a.refused = a.refused || b == nil
		return b
	}
	if size > uint64(cap(a.buffer)) {
		room := size
		if a.buffer != nil {
			// Half as much again, so that growing page by page doesn't copy everything each time.
			room = min(max(size, uint64(cap(a.buffer))*3/2), uint64(a.limit))
		}
		grown := make([]byte, size, room)
		copy(grown, a.buffer)
		a.buffer = grown
	}
	// What lies beyond the old length was never used, so it is zero.
	a.buffer = a.buffer[:size]
	return a.buffer
}

// Free releases the memory.
func (a *arena) Free() {
	a.buffer = nil
	if a.given != nil {
		a.given.Free()
	}
}
