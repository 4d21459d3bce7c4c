package wasiabi

import (
	"encoding/binary"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// memory is a guest's memory, valid while the guest is in a call and so can't
// grow it.
type memory []byte

func memoryOf(m api.Module) memory {
	mem := m.Memory()
	view, _ := mem.Read(0, mem.Size())
	return view
}

// view returns n bytes at ptr. Sums are in 64 bits, where that of two 32-bit
// numbers cannot wrap. If n is 0, ptr may be any number.
func (m memory) view(ptr uint32, n uint64) ([]byte, Errno) {
	if n == 0 {
		return nil, OK
	}
	if n > uint64(len(m)) || uint64(ptr) > uint64(len(m))-n {
		return nil, EFAULT
	}
	return m[ptr : uint64(ptr)+n : uint64(ptr)+n], OK
}

func (m memory) put32(ptr, v uint32) Errno {
	b, e := m.view(ptr, 4)
	if e == OK {
		binary.LittleEndian.PutUint32(b, v)
	}
	return e
}

func (m memory) put64(ptr uint32, v uint64) Errno {
	b, e := m.view(ptr, 8)
	if e == OK {
		binary.LittleEndian.PutUint64(b, v)
	}
	return e
}

// maxPath is the longest path, like PATH_MAX on Linux.
const maxPath = 4096

// path copies a path. Names are arbitrary bytes, as on Linux, except NUL.
func (m memory) path(ptr, n uint32) (string, Errno) {
	switch {
	case n == 0:
		return "", ENOENT
	case n > maxPath:
		return "", ENAMETOOLONG
	}
	b, e := m.view(ptr, uint64(n))
	if e != OK {
		return "", e
	}
	name := string(b)
	if strings.IndexByte(name, 0) >= 0 {
		return "", EINVAL
	}
	return name, OK
}

// Bounds of a list of buffers, both as on Linux.
const (
	maxIovecs = 1024
	maxIO     = 1<<31 - 1<<12 // bytes in one call
	iovecSize = 8
)

// iovecs is a checked list of buffers: all of them are within memory.
type iovecs struct {
	m     memory
	list  []byte
	total int
	whole []byte // one buffer, instead of a list
}

func (m memory) iovecs(ptr, n uint32) (iovecs, Errno) {
	if n > maxIovecs {
		return iovecs{}, EINVAL
	}
	list, e := m.view(ptr, uint64(n)*iovecSize)
	if e != OK {
		return iovecs{}, e
	}
	v := iovecs{m: m, list: list}
	total := uint64(0)
	for i := range v.len() {
		at, size := v.entry(i)
		if _, e := m.view(at, size); e != OK {
			return iovecs{}, e
		}
		if total += size; total > maxIO {
			return iovecs{}, EINVAL
		}
	}
	v.total = int(total)
	return v, OK
}

func (v iovecs) len() int {
	if v.whole != nil {
		return 1
	}
	return len(v.list) / iovecSize
}

func (v iovecs) entry(i int) (ptr uint32, n uint64) {
	e := v.list[i*iovecSize:]
	return binary.LittleEndian.Uint32(e), uint64(binary.LittleEndian.Uint32(e[4:]))
}

// buffer returns the i-th buffer. The list itself lies in memory, where a read
// into an earlier buffer may have changed it: so it is checked again.
func (v iovecs) buffer(i int) []byte {
	if v.whole != nil {
		return v.whole
	}
	b, _ := v.m.view(v.entry(i))
	return b
}

// gather copies the buffers into one.
func (v iovecs) gather() iovecs {
	whole := make([]byte, 0, v.total)
	for i := range v.len() {
		whole = append(whole, v.buffer(i)...)
	}
	return iovecs{whole: whole, total: v.total}
}
