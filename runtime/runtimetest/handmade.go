package runtimetest

import (
	"encoding/binary"
	"strings"
)

// The following builds modules by hand that no compiler would emit, from pieces
// of bytes in strings.

// Module returns a module made of sections; each is its id and its content.
func Module(sections ...string) []byte {
	b := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range sections {
		b = append(b, s[0])
		b = binary.AppendUvarint(b, uint64(len(s)-1))
		b = append(b, s[1:]...)
	}
	return b
}

// Unsigned encodes an unsigned number.
func Unsigned(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }

// Signed encodes a signed number.
func Signed(n int32) string {
	var b []byte
	for {
		low := byte(n & 0x7f)
		n >>= 7
		if n == 0 && low&0x40 == 0 || n == -1 && low&0x40 != 0 {
			return string(append(b, low))
		}
		b = append(b, low|0x80)
	}
}

// Sized returns a text preceded by its length.
func Sized(s string) string { return Unsigned(len(s)) + s }

// Instructions.
const (
	Loop = "\x03\x40" // up to Again
	// Again branches to the beginning of the loop, and closes it.
	Again = "\x0c\x00\x0b"
	// Counter reads the number at the beginning of memory; see [Bump].
	Counter = "\x41\x00\x28\x02\x00"
)

// Number is an instruction that pushes a constant.
func Number(n int32) string { return "\x41" + Signed(n) }

// Call is an instruction that calls a function.
func Call(f int) string { return "\x10" + Unsigned(f) }

// Store writes to memory at the address on the stack plus an offset.
func Store(offset int) string { return Number(1) + "\x36\x02" + Unsigned(offset) }

// Bump adds to the number at the beginning of memory.
func Bump(n int32) string { return Number(0) + Counter + Number(n) + "\x6a\x36\x02\x00" }

// Handmade builds a worker with a number of pages of memory and functions
// without parameters and results. The first is what a job calls, or the
// module's start function.
func Handmade(pages int, starts bool, functions ...string) []byte {
	count := len(functions)
	kinds := Unsigned(count+1) + strings.Repeat("\x01", count) + "\x00"
	bodies := Unsigned(count + 1)
	entry := Call(0)
	if starts {
		entry = ""
	}
	for _, f := range append(functions, entry+"\x42\x00") {
		bodies += Sized("\x00" + f + "\x0b")
	}
	const types = "\x01\x02\x60\x01\x7f\x01\x7e\x60\x00\x00" // (i32) → i64 and () → ()
	sections := []string{types, "\x03" + kinds, "\x05\x01\x00" + Unsigned(pages), "\x07\x02\x06memory\x02\x00\x06jh_run\x00" + Unsigned(count)}
	if starts {
		sections = append(sections, "\x08\x00")
	}
	return Module(append(sections, "\x0a"+bodies)...)
}
