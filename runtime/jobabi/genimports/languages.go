package main

import (
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/jobabi"
)

// lists returns all places. SDKs that offer a mailbox have no use for input.
func lists() []list {
	input := []string{"input"}
	return []list{
		{file: "plugins/sdk/c/jobhost/abi.h", comment: "//", line: c.line},
		{file: "internal/testing/guests/src/jobhost1.h", comment: "//", line: shortC.line},
		{file: "plugins/sdk/go/host_wasm.go", comment: "//", line: goLine, without: input, spaced: true},
		{file: "plugins/sdk/rust/src/host_wasm.rs", comment: "//", line: rustLine, without: input},
		{file: "plugins/sdk/zig/src/abi.zig", comment: "//", line: zigLine, without: input},
		{file: "plugins/sdk/assemblyscript/assembly/host.ts", comment: "//", line: assemblyScriptLine, without: input},
		// The glue has its own way to read: a message in pieces.
		{file: "plugins/sdk/js/lib/glue.mjs", comment: "//", line: glueLine, without: []string{"input", "read"}},
	}
}

// result returns the word for no result, i32 or i64.
func result(f jobabi.Function, none, i32, i64 string) string {
	switch {
	case len(f.Results) == 0:
		return none
	case f.Results[0] == api.ValueTypeI64:
		return i64
	}
	return i32
}

// params joins the arguments of a function as spell writes them.
func params(f jobabi.Function, spell func(jobabi.Arg) string) string {
	all := make([]string, len(f.Args))
	for i, a := range f.Args {
		all[i] = spell(a)
	}
	return strings.Join(all, ", ")
}

// types are a language's spellings of the kinds of arguments, with %s for the
// name followed by %s for that of the count.
type types map[jobabi.Kind]string

func (t types) spell(a jobabi.Arg) string {
	if a.IsPointer() {
		return fmt.Sprintf(t[a.Kind], a.Name, a.Count)
	}
	return fmt.Sprintf(t[a.Kind], a.Name)
}

// pointers returns types in which everything the host reads is spelled alike, as
// is everything it writes.
func pointers(i32, i64, f64, read, write, handles string) types {
	return types{
		jobabi.Int32: i32, jobabi.Int64: i64, jobabi.Float64: f64,
		jobabi.Text: read, jobabi.Bytes: read, jobabi.Handles: handles,
		jobabi.Room: write, jobabi.TextRoom: write,
	}
}

// dialect is the style of C in one header.
type dialect struct {
	importing, prefix, i32, i64 string
	types                       types
}

var (
	c = dialect{"JH_IMPORT", "jh_abi_", "int32_t", "int64_t", pointers("int32_t %s", "int64_t %s", "double %s",
		"const void *%s, uint32_t %s", "void *%s, uint32_t %s", "const int32_t *%s, uint32_t %s")}
	shortC = dialect{"IMPORT", "jh_", "i32", "i64", pointers("i32 %s", "i64 %s", "double %s",
		"const void *%s, u32 %s", "void *%s, u32 %s", "const i32 *%s, u32 %s")}
)

func (d *dialect) line(f jobabi.Function) string {
	args := params(f, d.types.spell)
	if args == "" {
		args = "void"
	}
	return fmt.Sprintf("%s(%s) %s %s%s(%s);\n", d.importing, f.Name, result(f, "void", d.i32, d.i64), d.prefix, f.Name, args)
}

var zigTypes = pointers("%s: i32", "%s: i64", "%s: f64", "%s: Ptr, %s: usize", "%s: Buf, %s: usize", "%s: [*]const i32, %s: usize")

func zigLine(f jobabi.Function) string {
	return fmt.Sprintf("pub extern %q fn %s(%s) %s;\n", jobabi.Module, f.Name, params(f, zigTypes.spell), result(f, "void", "i32", "i64"))
}

var assemblyScriptTypes = pointers("%s: i32", "%s: i64", "%s: f64", "%s: usize, %s: i32", "%s: usize, %s: i32", "%s: usize, %s: i32")

func assemblyScriptLine(f jobabi.Function) string {
	return fmt.Sprintf("// @ts-ignore: decorator\n@external(%q, %q) export declare function %s(%s): %s;\n",
		jobabi.Module, f.Name, f.Name, params(f, assemblyScriptTypes.spell), result(f, "void", "i32", "i64"))
}

var rustTypes = pointers("%s: i32", "%s: i64", "%s: f64", "%s: *const u8, %s: usize", "%s: *mut u8, %s: usize", "%s: *const i32, %s: usize")

// rustWidth is max_width of rustfmt.toml: a longer line has each argument on a line of its own.
const rustWidth = 120

func rustLine(f jobabi.Function) string {
	const indent = "        "
	args, arrow := params(f, rustTypes.spell), result(f, "", " -> i32", " -> i64")
	line := indent + "pub fn " + f.Name + "(" + args + ")" + arrow + ";\n"
	if len(line)-1 <= rustWidth {
		return line
	}
	args = indent + "    " + strings.ReplaceAll(args, ", ", ",\n"+indent+"    ") + ",\n"
	return indent + "pub fn " + f.Name + "(\n" + args + indent + ")" + arrow + ";\n"
}

// goTypes pass text as a string, which the compiler passes as an address and a length.
var goTypes = pointers("%s int32", "%s int64", "%s float64", "%s unsafe.Pointer, %sLen uint32", "%s unsafe.Pointer, capacity uint32", "%s unsafe.Pointer, count uint32")

func goArg(a jobabi.Arg) string {
	switch a.Kind {
	case jobabi.Text:
		return a.Name + " string"
	case jobabi.Bytes:
		return fmt.Sprintf(goTypes[a.Kind], a.Name, a.Name)
	case jobabi.Int32, jobabi.Int64, jobabi.Float64, jobabi.Handles, jobabi.Room, jobabi.TextRoom:
	}
	return fmt.Sprintf(goTypes[a.Kind], a.Name)
}

// goLine marks each function that takes an address as noescape, so that buffers
// may stay on the caller's stack.
func goLine(f jobabi.Function) string {
	text := fmt.Sprintf("//go:wasmimport %s %s\n", jobabi.Module, f.Name)
	for _, a := range f.Args {
		if a.IsPointer() {
			text += "//go:noescape\n"
			break
		}
	}
	return text + strings.TrimSuffix(fmt.Sprintf("func host%s(%s) %s", goName(f.Name), params(f, goArg), result(f, "", "int32", "int64")), " ") + "\n"
}

// goName turns kv_get into KVGet.
func goName(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		switch word {
		case "kv", "http":
			b.WriteString(strings.ToUpper(word))
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// glueLine writes the type letters that the JavaScript SDK's glue documents.
func glueLine(f jobabi.Function) string {
	letters := map[jobabi.Kind]string{
		jobabi.Int32: "i", jobabi.Int64: "l", jobabi.Float64: "d",
		jobabi.Text: "b", jobabi.Bytes: "b", jobabi.Handles: "h",
	}
	args, answer := "", result(f, "", "i", "l")
	for _, a := range f.Args {
		args += letters[a.Kind]
		switch a.Kind {
		case jobabi.Room:
			answer = "r"
		case jobabi.TextRoom:
			answer = "t"
		case jobabi.Int32, jobabi.Int64, jobabi.Float64, jobabi.Text, jobabi.Bytes, jobabi.Handles:
		}
	}
	return fmt.Sprintf("  %s: %q,\n", f.Name, args+":"+answer)
}
