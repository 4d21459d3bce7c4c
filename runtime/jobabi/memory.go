package jobabi

import (
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Trap is what a host call panics with when a guest passes it a location outside its memory.
// The engine turns it into a failure that shows the message.
type Trap struct {
	Call     string // without the module
	Ptr, Len uint32
	Size     uint64 // of the memory
}

// Error says which call was given which location.
func (t *Trap) Error() string {
	return fmt.Sprintf("%s.%s was given %d bytes at %d, outside of the memory of %d bytes", Module, t.Call, t.Len, t.Ptr, t.Size)
}

// view returns the guest's bytes at (ptr, length) of the stack, valid until the
// guest continues. If length is 0 the pointer is not checked, so that it may be
// any number.
func view(m api.Module, call string, ptr, length uint64) []byte {
	p, n := uint32(ptr), uint32(length)
	if n == 0 {
		return nil
	}
	mem := m.Memory()
	size := uint64(mem.Size())
	// In 64 bits, where the sum of two 32-bit numbers cannot wrap.
	if uint64(p)+uint64(n) > size {
		panic(&Trap{Call: call, Ptr: p, Len: n, Size: size}) //nolint:forbidigo // how a host function traps: wazero recovers it
	}
	b, ok := mem.Read(p, n)
	if !ok {
		panic(&Trap{Call: call, Ptr: p, Len: n, Size: size}) //nolint:forbidigo // how a host function traps: wazero recovers it
	}
	return b
}

// bounded is view for text that may be at most `most` bytes long; ok is false when it is longer.
func bounded(m api.Module, call string, ptr, length uint64, most int) (b []byte, ok bool) {
	b = view(m, call, ptr, length)
	return b, len(b) <= most
}

// fill returns data to a guest by the fill-or-size rule: it writes data to the
// buffer if all of it fits, otherwise nothing, and returns the length of data
// in both cases.
func fill[T string | []byte](m api.Module, call string, stack []uint64, buf, capacity uint64, data T) {
	if len(data) > maxSize {
		errno(stack, hostcall.ErrLimit)
		return
	}
	if n := uint64(len(data)); n <= uint64(uint32(capacity)) {
		to := view(m, call, buf, n)
		switch data := any(data).(type) {
		case []byte:
			hostcall.Copy(to, data)
		case string:
			copy(to, data)
		}
	}
	stack[0] = api.EncodeI32(int32(len(data)))
}

// maxSize is the largest size that fits the positive half of a result.
const maxSize = 1<<31 - 1
