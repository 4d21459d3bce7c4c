package rewrite

import "github.com/jobhost/jobhost/runtime/module"

// wazero 1.12's compiler for amd64 takes a constant address of 2 GiB or more for
// a negative number if it has checked its bounds before, on the same path, and
// recomputes the address, after a call say: 4 GiB before the one that was
// checked, outside the memory. What is not a constant to the compiler, which
// does no constant folding, is extended correctly.

// isHighAddress reports whether a constant can be an address of 2 GiB or more.
// The last page of 4 GiB is in no memory, see snapshot.MaxBytes. So −1 and
// similar constants, which are frequent, are not rewritten.
func isHighAddress(v int32) bool { return v < -lastPage }

// lastPage is the size of the page that no memory has.
const lastPage = 1 << 16

// highConstant writes a constant as the result of a xor.
func (f *functionWriter) highConstant(in *module.Instruction) {
	f.code.i32(^int32(in.Immediate))
	f.code.i32(-1)
	f.code.op(opI32Xor)
}
