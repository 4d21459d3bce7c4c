package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, in, want string }{
		{"text stays", `plain "text" with \ and ünïcødé 日本 🙂`, `plain "text" with \ and ünïcødé 日本 🙂`},
		{"escape", "\x1b[2J", `\x1b[2J`},
		{"title", "\x1b]0;x\x07", `\x1b]0;x\x07`},
		{"C1 in UTF-8", "\u009b31m", `\u009b31m`},
		{"C1 as a byte", "\x9b31m", `\x9b31m`},
		{"lines", "a\r\nb\tc", `a\r\nb\tc`},
		{"delete and NUL", "\x7f\x00", `\x7f\x00`},
		{"right to left", "\u202egpj.exe\u2066", `\u202egpj.exe\u2066`},
		{"invisible", "a\u200bb\ufeff\u2028", `a\u200bb\ufeff\u2028`},
		{"beyond the first plane", "\U000e0041", `\U000e0041`},
		{"broken UTF-8", "a\xffb\xc3", `a\xffb\xc3`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := printable(test.in); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// FuzzEscape checks that nothing but text gets through, and that JSON means
// the same after it.
func FuzzEscape(f *testing.F) {
	f.Add(hostile)
	f.Add("\xff\u2028\U000e0041")
	f.Fuzz(func(t *testing.T, s string) {
		if got := printable(s); !isText([]byte(got)) || strings.ContainsAny(got, "\n\t\r") {
			t.Fatalf("printable(%q) = %q", s, got)
		}
		if got := indent(s); !isText([]byte(got)) {
			t.Fatalf("indent(%q) = %q", s, got)
		}
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var before, after string
		escaped := escapeJSON(data)
		if strings.IndexFunc(string(escaped), func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
			t.Fatalf("escapeJSON left %q", escaped)
		}
		if json.Unmarshal(data, &before) != nil || json.Unmarshal(escaped, &after) != nil || before != after {
			t.Fatalf("escapeJSON(%s) = %s", data, escaped)
		}
	})
}

func TestIsText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, in string
		want     bool
	}{
		{"nothing", "", true},
		{"lines", "a\n\tb\r\nc", true},
		{"carriage return", "a\rb", false},
		{"carriage return at the end", "a\r", false},
		{"escape", "\x1b[m", false},
		{"C1", "\u009b", false},
		{"broken UTF-8", "\xff", false},
		{"right to left", "\u202e", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := isText([]byte(test.in)); got != test.want {
				t.Error(got)
			}
		})
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", mostMessage)
	got := clip(long)
	if len(got) > mostMessage+30 || !utf8.ValidString(got) || !strings.HasSuffix(got, "… (8192 bytes)") {
		t.Errorf("%d bytes: %q", len(got), got[len(got)-30:])
	}
}
