package rewrite

import "github.com/jobhost/jobhost/runtime/module"

// wazero 1.12's compiler for amd64 takes a constant address of 2 GiB or more for
// a negative number where it has checked its bounds before, in the same way to
// here, and computes the place anew, after a call say: 4 GiB before the place
// that was checked, outside of the memory. What is no constant to the compiler,
// which computes nothing in advance, is extended as it should be.

// isHighAddress reports whether a constant can be an address of 2 GiB or more.
// The last page of 4 GiB is in no memory, see snapshot.MaxBytes. So −1 and the
// like, which are frequent, stay.
func isHighAddress(v int32) bool { return v < -lastPage }

// lastPage is the size of the page that no memory has.
const lastPage = 1 << 16

// highConstant writes a constant as what a xor leaves.
func (f *functionWriter) highConstant(in *module.Instruction) {
	f.code.i32(^int32(in.Immediate))
	f.code.i32(-1)
	f.code.op(opI32Xor)
}
