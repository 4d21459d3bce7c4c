package rig_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// hidden is code that a decoder doesn't see that reads the number behind 0xfd as
// a LEB128: to it the 16 bytes after fd 8c 00 are those of a v128.const. wazero
// reads one byte, finds i16x8.shr_s and a nop or unreachable, and runs them. They
// may be followed by another constant, which hides as much again.
func hidden(code ...byte) []byte {
	const room = 14 // the last two begin the next constant, or end this one
	var b []byte
	for len(code) > 0 {
		n := min(room, len(code))
		b = append(b, 0xfd, 0x8c, 0x00)
		b = append(b, code[:n]...)
		b = append(b, bytes.Repeat([]byte{0x01}, room-n)...)
		b = append(b, 0x1a, 0x0b)
		code = code[n:]
	}
	return b
}

// pieces returns code that is taken apart: each piece must fit into one constant.
func pieces(all ...[]byte) []byte {
	var b []byte
	for _, p := range all {
		b = append(b, hidden(p...)...)
	}
	return b
}

// TestHiddenCode refuses the modules by which guests once escaped: each hides
// instructions behind a number that is not in its shortest form. The error names
// the place of the first.
func TestHiddenCode(t *testing.T) {
	t.Parallel()
	grow := []byte{0xd0, 0x70, 0x41, 0x80, 0xe5, 0x9a, 0xf7, 0x00, 0xfc, 0x0f, 0, 0x1a} // ref.null, 250,000,000, table.grow, drop
	confused := []byte{0x1c, 1, 0x63, 0x1a}                                             // a type to the validator, a drop to the compiler
	number := append([]byte{0x42}, module.AppendS64(nil, 0x4141_4141_4141)...)
	jump := append([]byte{0x42}, module.AppendS64(nil, 0x4343_4343_4343)...)
	for _, test := range []struct {
		name string
		code []byte
	}{
		{"vecloop: an endless loop", pieces([]byte{0x03, 0x40, 0x0c, 0, 0x0b})},
		{"vecleak: a global that is never put back", pieces([]byte{0x42, 42, 0x24, 0})},
		{"vectable-250M: a table beyond all limits", pieces(grow)},
		{"vectable-6x250M: six times", pieces(grow, grow, grow, grow, grow, grow)},
		{"vecW10-5000: nested blocks", pieces(bytes.Repeat([]byte{0x02, 0x40}, 5000), bytes.Repeat([]byte{0x0b}, 5000))},
		{"esc-leak: a reference that becomes a number", pieces([]byte{0xd2, 0}, confused, []byte{0xad, 0x24, 0})},
		{"esc-wild: a number that becomes a table", pieces(number, confused, []byte{0x25, 0})},
		{"esc-jump: a number that becomes a function", pieces(jump, confused, []byte{0x26, 0, 0x11, 0, 0})},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := rig.Routine{Locals: []byte{module.V128, module.I32}, Code: slices.Concat(rig.In(module.LocalGet, 0), rig.In(module.LocalGet, 1), test.code)}
			wasm := bytesOf(t, rig.Sketch{Functions: []rig.Routine{f}, Globals: []byte{module.I64}, Table: 10, Memory: true})
			_, err := rig.Check(wasm)
			fault, ok := errors.AsType[*module.Error](err)
			if want := bytes.Index(wasm, []byte{0xfd, 0x8c, 0x00}); !ok || fault.Offset != want || !strings.Contains(fault.What, "shortest form") {
				t.Errorf("the error is %v, not about byte %d", err, want)
			}
		})
	}
}

// TestHiddenCodeRuns shows that wazero still reads one byte where the
// specification has a number, and so that ours must refuse what is longer.
func TestHiddenCodeRuns(t *testing.T) {
	t.Parallel()
	// To the specification this is a constant that is dropped; to wazero it is a
	// shift, an unreachable, and 15 bytes of code after that.
	shift := binary.LittleEndian.AppendUint64(nil, 0x0101_0101_0101_0100)
	code := slices.Concat(rig.In(module.LocalGet, 0), rig.In(module.LocalGet, 1), []byte{0xfd, 0x8d, 0x00}, shift, bytes.Repeat([]byte{1}, 8))
	f := rig.Routine{Params: []byte{module.V128, module.I32}, Code: append(code, rig.In(module.Drop)...)}
	wasm := bytesOf(t, rig.Sketch{Functions: []rig.Routine{f}})
	r := rig.NewRuntime(t.Context(), rig.Compiled)
	defer r.Close(t.Context())
	instance, err := r.Instantiate(t.Context(), wasm)
	if err != nil {
		t.Fatalf("wazero refuses it now, which it did not in 1.12: %v", err)
	}
	if _, err := instance.ExportedFunction("f0").Call(t.Context(), 0, 0, 0); rig.Trap(err) != "unreachable" {
		t.Errorf("it ends with %v: wazero no longer takes the constant for instructions", err)
	}
}
