package wasm_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
)

// TestLongNames: what is said about a module is bounded, whatever the names in it.
func TestLongNames(t *testing.T) {
	t.Parallel()
	section := func(id byte, content ...[]byte) []byte {
		joined := bytes.Join(content, nil)
		return append(binary.AppendUvarint([]byte{id}, uint64(len(joined))), joined...)
	}
	name := func(first byte, kind ...byte) []byte {
		const size = 1 << 20
		long := append([]byte{first}, bytes.Repeat([]byte("x"), size-1)...)
		return append(append(binary.AppendUvarint(nil, size), long...), kind...)
	}
	module := func(sections ...[]byte) []byte {
		return append([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, bytes.Join(sections, nil)...)
	}
	types := section(1, []byte{1, 0x60, 0, 1, 0x7f}) // () → i32
	code := section(10, []byte{1, 4, 0, 0x41, 0, 0x0b})
	exports := module(types, section(3, []byte{1, 0}), section(7, []byte{2}, name('a', 0, 0), name('b', 0, 0)), code)
	imports := module(types, section(2, []byte{1}, name('m'), name('f', 0, 0)))
	e := newEngine(t)
	for _, src := range []runtime.Source{
		{ABI: runtime.ABIExtism, Bytes: exports},
		{ABI: runtime.ABIJobhost, Bytes: exports},
		{ABI: runtime.ABIExtism, Bytes: exports, Entry: strings.Repeat("c", 1<<20)},
		{ABI: runtime.ABIExtism, Bytes: imports},
		{ABI: runtime.ABIJobhost, Bytes: imports},
		{ABI: strings.Repeat("abi", 1<<20), Bytes: exports},
		{ABI: runtime.ABIExtism, Bytes: exports, Linked: []runtime.Linked{{Name: strings.Repeat("l", 1<<20), Bytes: []byte("x")}}},
	} {
		_, err := e.Load(t.Context(), src)
		if err == nil {
			t.Errorf("%.10s was loaded", src.ABI)
			continue
		}
		if text := err.Error(); len(text) > 3000 || len(jobhost.HintOf(err)) > 3000 {
			t.Errorf("%.10s: a message of %d bytes, a hint of %d: %.300s", src.ABI, len(text), len(jobhost.HintOf(err)), text)
		}
	}
}
