package preflight_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost/runtime/wasm/preflight"
)

func TestNotCore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, what, hint string }{
		{"module", header, "", ""},
		{"module with more", header + "\x00", "", ""},
		{"empty", "", "empty", "interrupted"},
		{"ELF", "\x7fELF\x02\x01", "native Linux", "compile for wasm32"},
		{"gzip", "\x1f\x8b\x08", "gzip", "gunzip"},
		{"script", "#!/bin/sh\n", "a script", "compile it"},
		{"Go source", "package main\n\nfunc main() {}\n", "text", "not its source"},
		{"text in another alphabet", "пакет", "text", "not its source"},
		{"wat", "  (module (memory 1))", "WebAssembly text", "wat2wasm"},
		{"wat with a comment", ";; first\n(module)", "WebAssembly text", "wat2wasm"},
		{"html", "<!DOCTYPE html>", "HTML", "download"},
		{"LFS pointer", "version https://git-lfs.github.com/spec/v1\n", "LFS", "git lfs pull"},
		{"component", "\x00asm\x0d\x00\x01\x00\x00", "component", "core module"},
		{"component cut off", "\x00asm\x0d\x00", "cut off after 6 bytes", "interrupted"},
		{"seven bytes", header[:7], "cut off after 7 bytes", "interrupted"},
		{"version 2", "\x00asm\x02\x00\x00\x00", "unknown version 02 00 00 00", "version 1"},
		{"noise", "\x01\x02\x03\x04", "begins with 01 02 03 04", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			what, hint := preflight.NotCore([]byte(c.file))
			if !strings.Contains(what, c.what) || !strings.Contains(hint, c.hint) || c.what == "" && what != "" {
				t.Errorf("is %q; %q", what, hint)
			}
		})
	}
}
