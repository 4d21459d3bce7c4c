package preflight_test

import (
	"encoding/binary"
	"strings"
)

// The parts of modules, as bytes in strings.
const (
	header  = "\x00asm\x01\x00\x00\x00"
	noTypes = "\x60\x00\x00"     // () → ()
	takesI  = "\x60\x01\x7f\x00" // (i32) → ()
	memory1 = "\x05\x03\x01\x00\x01"
)

func number(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }

// vector is a section of n entries.
func vector(id byte, n int, entries string) string {
	content := number(n) + entries
	return string(rune(id)) + number(len(content)) + content
}

// signature is a function type of so many i32.
func signature(params, results int) string {
	return "\x60" + number(params) + strings.Repeat("\x7f", params) + number(results) + strings.Repeat("\x7f", results)
}

// body is a function with locals of type i32.
func body(locals int, code string) string {
	groups := "\x00"
	if locals > 0 {
		groups = "\x01" + number(locals) + "\x7f"
	}
	code = groups + code + "\x0b"
	return number(len(code)) + code
}

// build is a module of one memory, so many globals and functions of type 0.
func build(types []string, globals int, bodies ...string) []byte {
	return []byte(header +
		vector(1, len(types), strings.Join(types, "")) +
		vector(3, len(bodies), strings.Repeat("\x00", len(bodies))) +
		"\x04\x04\x01\x70\x00\x01" + // a table of one entry
		memory1 +
		vector(6, globals, strings.Repeat("\x7f\x01\x41\x00\x0b", globals)) +
		vector(10, len(bodies), strings.Join(bodies, "")))
}

// one is a module of one function (i32) → ().
func one(locals int, code ...string) []byte {
	return build([]string{takesI, signature(0, 900), signature(900, 900)}, 1, body(locals, strings.Join(code, "")))
}

var times = strings.Repeat

// Pieces of code. Local 0 is the parameter.
const (
	get    = "\x20\x00"
	brIf   = "\x20\x00\x0d\x00"
	block  = "\x02\x40"
	loop   = "\x03\x40"
	ifs    = "\x20\x00\x04\x40"
	end    = "\x0b"
	drop   = "\x1a"
	load   = "\x28\x02\x00"
	mix    = "\x20\x00\x41\x03\x6c\x22\x00" // another value
	global = "\x24\x00"                     // set
	wait   = "\x20\x00\x28\x02\x00\x1a"     // what follows a call costs something
)

// eachLocal is code with the numbers of locals in it.
func eachLocal(n int, before, after string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(before + number(i) + after)
	}
	return b.String()
}

func repeated(n int, s string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}
