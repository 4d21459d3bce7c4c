package main

import (
	"fmt"
	"slices"
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
		{file: "plugins/sdk/rust/src/host_wasm.rs", comment: "//", line: rustLine, without: input, spaced: true},
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

// rustSafe are the types of a safe function, in which a slice is an address and a count.
var rustSafe = types{
	jobabi.Int32: "%s: i32", jobabi.Int64: "%s: i64", jobabi.Float64: "%s: f64",
	jobabi.Text: "%s: &str", jobabi.Bytes: "%s: &[u8]", jobabi.Handles: "%s: &[i32]",
	jobabi.Room: "%s: &mut [u8]", jobabi.TextRoom: "%s: &mut [u8]",
}

func rustArg(a jobabi.Arg) string { return fmt.Sprintf(rustSafe[a.Kind], a.Name) }

// rustPass are the arguments with which a safe function calls its import.
func rustPass(a jobabi.Arg) string {
	switch a.Kind {
	case jobabi.Text, jobabi.Bytes, jobabi.Handles:
		return a.Name + ".as_ptr(), " + a.Name + ".len()"
	case jobabi.Room, jobabi.TextRoom:
		return a.Name + ".as_mut_ptr(), " + a.Name + ".len()"
	case jobabi.Int32, jobabi.Int64, jobabi.Float64:
	}
	return a.Name
}

// rustWidth is max_width of rustfmt.toml: longer calls and declarations have their arguments on lines of their own.
const rustWidth = 120

// rustCall writes an indented call or declaration as rustfmt does.
func rustCall(indent, head, args, tail string) string {
	if line := indent + head + "(" + args + ")" + tail; len(line) <= rustWidth {
		return line + "\n"
	}
	args = indent + "    " + strings.ReplaceAll(args, ", ", ",\n"+indent+"    ") + ",\n"
	return indent + head + "(\n" + args + indent + ")" + tail + "\n"
}

// rustLine writes a safe function around the import.
func rustLine(f jobabi.Function) string {
	arrow := result(f, "", " -> i32", " -> i64")
	call := rustCall("        ", f.Name, params(f, rustPass), "")
	if line := "    unsafe { " + strings.TrimSpace(call) + " }\n"; len(line)-1 <= rustWidth && !strings.Contains(call[:len(call)-1], "\n") {
		call = line
	} else {
		call = "    unsafe {\n" + call + "    }\n"
	}
	return "pub fn " + f.Name + "(" + params(f, rustArg) + ")" + arrow + " {\n" +
		fmt.Sprintf("    #[link(wasm_import_module = %q)]\n", jobabi.Module) +
		"    extern \"C\" {\n" +
		rustCall("        ", "fn "+f.Name, params(f, rustTypes.spell), arrow+";") +
		"    }\n" + call + "}\n"
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
	return text + strings.TrimSuffix(fmt.Sprintf("func host%s(%s) %s", goName(f.Name), params(f, goArg), result(f, "", "int32", "int64")), " ") + "\n" + goMethod(f)
}

// byHand are the methods of the Go SDK's host that need more than their import: types of
// their own, or another call with more room.
var byHand = []string{"fail", "info", "log", "log_level", "kv_get", "state_get", "read", "drop"}

// goMethod writes the method of the host that only calls its import.
func goMethod(f jobabi.Function) string {
	if slices.Contains(byHand, f.Name) {
		return ""
	}
	call := fmt.Sprintf("host%s(%s)", goName(f.Name), params(f, goPass))
	switch {
	case f.Errno:
		return fmt.Sprintf("\nfunc (host) %s(%s) Errno {\n\treturn Errno(%s)\n}\n", goMethodName(f.Name), params(f, goSafe), call)
	case len(f.Results) == 0:
		return fmt.Sprintf("\nfunc (host) %s(%s) {\n\t%s\n}\n", goMethodName(f.Name), params(f, goSafe), call)
	}
	return fmt.Sprintf("\nfunc (host) %s(%s) %s {\n\treturn %s\n}\n", goMethodName(f.Name), params(f, goSafe), result(f, "", "int32", "int64"), call)
}

func goSafe(a jobabi.Arg) string {
	switch a.Kind {
	case jobabi.Bytes:
		return a.Name + " []byte"
	case jobabi.Handles:
		return a.Name + " []int32"
	case jobabi.Int32, jobabi.Int64, jobabi.Float64, jobabi.Text, jobabi.Room, jobabi.TextRoom:
	}
	return goArg(a)
}

func goPass(a jobabi.Arg) string {
	if a.Kind == jobabi.Bytes || a.Kind == jobabi.Handles {
		return fmt.Sprintf("unsafe.Pointer(unsafe.SliceData(%s)), uint32(len(%s))", a.Name, a.Name)
	}
	return a.Name
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

// goMethodName is the name in the SDK's interface, which has no short forms.
func goMethodName(name string) string {
	switch name {
	case "kv_del":
		return "KVDelete"
	case "kv_cas":
		return "KVCompareAndSet"
	case "recv":
		return "Receive"
	}
	return goName(name)
}

// glueLine writes the letters that the glue of the JavaScript SDK explains.
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
