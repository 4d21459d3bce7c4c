package module_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/runtime/module"
)

// canonical reads a module and writes it again.
func canonical(t *testing.T, b []byte) []byte {
	t.Helper()
	m, err := module.Read(b)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	out, err := m.Encode(nil)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return out
}

// instructions returns all instructions of a module, without their places.
func instructions(t *testing.T, b []byte) [][]module.Instruction {
	t.Helper()
	m, err := module.Read(b)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	all := make([][]module.Instruction, len(m.Bodies))
	for f := range m.Bodies {
		code := m.Instructions(f)
		for code.Next() {
			in := code.Instruction
			in.Start, in.End = 0, 0
			in.Depths = append([]uint32(nil), in.Depths...)
			all[f] = append(all[f], in)
		}
		if err := code.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestEncodeIsStable(t *testing.T) {
	t.Parallel()
	for name, b := range modules(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			once := canonical(t, b)
			if twice := canonical(t, once); !bytes.Equal(once, twice) {
				t.Error("a canonical module changed when it was written again")
			}
			before, after := instructions(t, b), instructions(t, once)
			if len(before) != len(after) {
				t.Fatalf("%d functions became %d", len(before), len(after))
			}
			for f := range before {
				if len(before[f]) != len(after[f]) {
					t.Fatalf("function %d has %d instructions instead of %d", f, len(after[f]), len(before[f]))
				}
				for n := range before[f] {
					if got, want := before[f][n].Append(nil), after[f][n].Append(nil); !bytes.Equal(got, want) {
						t.Fatalf("function %d: instruction %d became % x instead of % x", f, n, got, want)
					}
				}
			}
		})
	}
}

// function is a module with one function of type () → () and a memory.
func function(body ...byte) []byte {
	b := []byte(module.Header + "\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01")
	return append(b, append([]byte{10, byte(len(body) + 3), 1, byte(len(body) + 1), 0}, body...)...)
}

func TestEveryOpcodeRoundTrips(t *testing.T) {
	t.Parallel()
	known := 0
	for _, prefix := range []uint32{0, 0xfc, 0xfd} {
		for n := range uint32(256) {
			op := prefix<<8 | n
			o := module.Describe(op)
			if o == nil {
				continue
			}
			known++
			in := module.Instruction{
				Op: op, Immediate: 1, Second: 1, Type: module.F64, Lane: 1, Block: module.BlockType{Index: -1, Value: module.V128},
				Depths: []uint32{3, 200, 0}, Bytes: []byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x1f"),
			}
			if o.Operands == module.RefTyped {
				in.Immediate = uint64(module.ExternRef)
			}
			code := in.Append(nil)
			body := append([]byte{}, code...)
			for range 2 { // closes what a block opens
				body = append(body, 0x0b)
			}
			m, err := module.Read(function(body...))
			if err != nil {
				t.Fatalf("%s: %v", o.Name, err)
			}
			all := m.Instructions(0)
			if !all.Next() {
				t.Fatalf("%s: % x: %v", o.Name, code, all.Err())
			}
			if got := all.Append(nil); !bytes.Equal(got, code) || all.End-all.Start != len(code) {
				t.Errorf("%s: % x was read as % x, %d bytes long", o.Name, code, got, all.End-all.Start)
			}
		}
	}
	// The numbers are those of the specification: 172 of one byte with the 11 for
	// references and control, 18 and 236 with prefixes.
	if known != 183+18+236 {
		t.Errorf("%d instructions are known", known)
	}
}

func TestRefusedEncodings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, want string
		body       []byte
	}{
		{"a vector's number in two bytes of which one is enough", "shortest form", []byte{0xfd, 0x8c, 0, 0x0b}},
		{"a vector's number in three bytes", "shortest form", []byte{0xfd, 0x80, 0x81, 0, 0x0b}},
		{"memory.size of a second memory", "only one memory", []byte{0x3f, 1, 0x1a, 0x0b}},
		{"memory.size of memory 0 in two bytes", "only one memory", []byte{0x3f, 0x80, 0, 0x1a, 0x0b}},
		{"a number beyond the table", "0xfd 256 is unknown", []byte{0xfd, 0x80, 2, 0x0b}},
		{"a gap of the table", "0xfd 154 is unknown", []byte{0xfd, 0x9a, 1, 0x0b}},
		{"a relaxed vector instruction", "0xfd 276 is unknown", []byte{0xfd, 0x94, 2, 0x0b}},
		{"a misc number beyond the table", "0xfc 18 is unknown", []byte{0xfc, 18, 0x0b}},
		{"tail call", "0x12 is unknown", []byte{0x12, 0, 0x0b}},
		{"try_table", "0x1f is unknown", []byte{0x1f, 0x40, 0, 0x0b}},
		{"atomics", "0xfe is unknown", []byte{0xfe, 0, 0, 0x0b}},
		{"select of a typed reference", "value type 0x63 is unknown", []byte{0x1c, 1, 0x63, 0x1a, 0x0b}},
		{"select of a typed reference that is not null", "value type 0x64 is unknown", []byte{0x1c, 1, 0x64, 0x1a, 0x0b}},
		{"select of an exception", "value type 0x69 is unknown", []byte{0x1c, 1, 0x69, 0x0b}},
		{"select of two types", "2 types", []byte{0x1c, 2, module.I32, module.I32, 0x0b}},
		{"a block of a typed reference", "a block type is unknown", []byte{0x02, 0x63, 0x0b, 0x0b}},
		{"a block type −64 in two bytes", "a block type is unknown", []byte{0x02, 0xc0, 0x7f, 0x0b, 0x0b}},
		{"a block type with a bit too many", "larger than 33 bits", []byte{0x02, 0x80, 0x80, 0x80, 0x80, 0x40, 0x0b, 0x0b}},
		{"ref.null of an exception", "reference type 0x69 is unknown", []byte{0xd0, 0x69, 0x0b}},
		{"ref.null of an index", "reference type 0x00 is unknown", []byte{0xd0, 0, 0x0b}},
		{"an alignment with the bit for memories", "names a memory", []byte{0x28, 0x42, 0, 0, 0x0b}},
		{"an alignment of 2**32", "alignment", []byte{0x28, 32, 0, 0x0b}},
		{"a lane beyond the vector", "lane 16 of i8x16.extract_lane_s", []byte{0xfd, 21, 16, 0x0b}},
		{"a lane of two vectors too far", "lane 32 of i8x16.shuffle", append([]byte{0xfd, 13}, append(bytes.Repeat([]byte{32}, 16), 0x0b)...)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m, err := module.Read(function(test.body...))
			if err == nil {
				_, err = walk(m)
			}
			if e, ok := errors.AsType[*module.Error](err); !ok || !strings.Contains(e.What, test.want) {
				t.Errorf("the error is %v, not %q", err, test.want)
			}
		})
	}
}

func TestPaddedNumbersAreWrittenAnew(t *testing.T) {
	t.Parallel()
	// What linkers leave for indices that they fill in later.
	padded := function(0x41, 0x81, 0x80, 0x80, 0x80, 0, 0x1a, 0x43, 0, 0, 0, 0, 0xfc, 0x80, 0x80, 0, 0x1a, 0x0b)
	got := instructions(t, padded)[0]
	if len(got) != 6 || got[0].Immediate != 1 {
		t.Fatalf("read as %v", got)
	}
	if want := function(0x41, 1, 0x1a, 0x43, 0, 0, 0, 0, 0xfc, 0, 0x1a, 0x0b); !bytes.Equal(canonical(t, padded), want) {
		t.Errorf("written as % x instead of % x", canonical(t, padded), want)
	}
}
