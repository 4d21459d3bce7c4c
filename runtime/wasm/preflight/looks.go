package preflight

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// magics are the beginnings of files that are often submitted by mistake, with
// what they are and what to do about it.
var magics = []struct{ prefix, what, hint string }{
	{"\x7fELF", "a native Linux program or library (ELF)", "compile for wasm32 instead"},
	{"MZ", "a native Windows program (PE)", "compile for wasm32 instead"},
	{"\xcf\xfa\xed\xfe", "a native macOS program (Mach-O)", "compile for wasm32 instead"},
	{"\xca\xfe\xba\xbe", "a Java class or a universal macOS program", "compile for wasm32 instead"},
	{"BC\xc0\xde", "LLVM bitcode", "link it: clang --target=wasm32 … -o worker.wasm"},
	{"!<arch>", "a static library", "link it: clang --target=wasm32 … -o worker.wasm"},
	{"\x1f\x8b", "compressed with gzip", "gunzip it first"},
	{"\x28\xb5\x2f\xfd", "compressed with zstd", "unzstd it first"},
	{"BZh", "compressed with bzip2", "bunzip2 it first"},
	{"\xfd7zXZ", "compressed with xz", "unxz it first"},
	{"PK\x03\x04", "a zip archive", "unpack it first"},
	{"#!", "a script", "compile it to WebAssembly: see docs/abi.md"},
	{"version https://git-lfs", "a Git LFS pointer, not the file itself", "run git lfs pull"},
	{"<", "HTML or XML, perhaps the error page of a download", "download it again"},
}

const (
	coreHeader      = "\x00asm\x01\x00\x00\x00"
	componentHeader = "\x00asm\x0d\x00\x01\x00"
)

// NotCore says what the bytes are if they don't begin like a core WebAssembly
// module, and "" if they do.
func NotCore(b []byte) (what, hint string) {
	switch {
	case len(b) == 0:
		return "empty", "was the build interrupted?"
	case bytes.HasPrefix(b, []byte(coreHeader)):
		return "", ""
	case bytes.HasPrefix(b, []byte(componentHeader)):
		return "a WebAssembly component", "build a core module, for the target wasm32-unknown-unknown or wasm32-wasip1 say"
	case bytes.HasPrefix([]byte(coreHeader), b), bytes.HasPrefix([]byte(componentHeader), b):
		return fmt.Sprintf("cut off after %d bytes", len(b)), "was the build or the copy interrupted?"
	case bytes.HasPrefix(b, []byte(coreHeader[:4])):
		return fmt.Sprintf("WebAssembly of the unknown version % x", b[4:8]), "this host runs version 1"
	}
	for _, m := range magics {
		if bytes.HasPrefix(b, []byte(m.prefix)) {
			return m.what, m.hint
		}
	}
	start := b[:min(len(b), 512)]
	if text := bytes.TrimLeft(start, " \t\r\n"); bytes.HasPrefix(text, []byte("(module")) || bytes.HasPrefix(text, []byte(";;")) {
		return "WebAssembly text", "translate it first: wat2wasm worker.wat"
	}
	if isText(start) {
		return "text", "name the compiled .wasm file, not its source"
	}
	return fmt.Sprintf("not WebAssembly: it begins with % x", b[:min(len(b), 8)]), ""
}

func isText(b []byte) bool {
	// The end may split a character.
	for i := 0; i < utf8.UTFMax && len(b) > 0 && !utf8.Valid(b); i++ {
		b = b[:len(b)-1]
	}
	return len(b) > 0 && utf8.Valid(b) && !bytes.ContainsFunc(b, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r'
	})
}
