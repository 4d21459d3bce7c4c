package text_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/jobhost/jobhost/internal/text"
)

// escapes are texts and their one-line forms.
var escapes = []struct{ name, in, want string }{
	{"empty", "", ""},
	{"text stays", `plain "text" with \ and ünïcødé 日本 🙂`, `plain "text" with \ and ünïcødé 日本 🙂`},
	{"spaces stay", "a\u00a0b\u3000c", "a\u00a0b\u3000c"},
	{"joiners stay", "👩\u200d💻 می\u200cخواهم", "👩\u200d💻 می\u200cخواهم"},
	{"a real U+FFFD stays", "a \ufffd", "a \ufffd"},
	{"colour", "\x1b[31mred", `\x1b[31mred`},
	{"title", "\x1b]0;x\x07", `\x1b]0;x\x07`},
	{"C1 in UTF-8", "\u009b31m", `\u009b31m`},
	{"C1 as a byte", "\x9b31m", `\x9b31m`},
	{"lines", "a\r\nb\tc", `a\r\nb\tc`},
	{"delete and NUL", "\x7f\x00", `\x7f\x00`},
	{"direction", "\u202egpj.exe\u2066\u200f\u061c", `\u202egpj.exe\u2066\u200f\u061c`},
	{"invisible", "a\u200bb\ufeff\u2028\u2029", `a\u200bb\ufeff\u2028\u2029`},
	{"private", "\ue0b0", `\ue0b0`},
	{"beyond the first plane", "\U000e0041", `\U000e0041`},
	{"unknown to Unicode", "\U000e0fff", `\U000e0fff`},
	{"broken UTF-8", "a\xffb\xc3 \xed\xa0\x80", `a\xffb\xc3 \xed\xa0\x80`},
}

func TestEscape(t *testing.T) {
	t.Parallel()
	for _, tt := range escapes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := text.Escape(tt.in, ""); got != tt.want {
				t.Errorf("Escape: %q, want %q", got, tt.want)
			}
			if got := text.Line(tt.in, 1000); got != tt.want {
				t.Errorf("Line: %q, want %q", got, tt.want)
			}
		})
	}
	if got := text.Escape("a\tb\n\x1b\xff", "\n\t"); got != "a\tb\n"+`\x1b\xff` {
		t.Errorf("with tabs and line ends: %q", got)
	}
	if got := text.Indent("a\nb\tc\x1b\n\n"); got != "a\n    b\tc"+`\x1b` {
		t.Errorf("indented: %q", got)
	}
}

func TestLineCuts(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"1234":     "1234",
		"12345":    "1234 …(cut)",
		"123é":     "123 …(cut)",
		"12é":      "12é",
		"12\x1b":   "12 …(cut)", // an escape sequence is never split
		"\x00\x00": `\x00 …(cut)`,
	} {
		if got := text.Line(in, 4); got != want {
			t.Errorf("Line(%q, 4) = %q, want %q", in, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, clip, quote string }{
		{"", "", `""`},
		{"1234", "1234", `"1234"`},
		{"12345", "1234…", `"1234"… (5 bytes)`},
		{"123é", "123…", `"123"… (5 bytes)`},
		{"a\x1b", "a\x1b", `"a\x1b"`},
	} {
		if got := text.Clip(tt.in, 4); got != tt.clip {
			t.Errorf("Clip(%q): %q, want %q", tt.in, got, tt.clip)
		}
		if got := text.Quote(tt.in, 4); got != tt.quote {
			t.Errorf("Quote(%q): %s, want %s", tt.in, got, tt.quote)
		}
	}
	if got, want := text.Message("ERROR:\n\t| a\x1b "+strings.Repeat("x", 400)), "ERROR:  | a  "+strings.Repeat("x", 287)+"…"; got != want {
		t.Errorf("Message: %q, want %q", got, want)
	}
}

func TestIsText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
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
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := text.IsText([]byte(tt.in)); got != tt.want {
				t.Error(got)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"abi", "host_call", "max_attempts", "memory", "plugin", "pool_size", "queue_capacity", "secrets", "timeout"}
	for _, tt := range []struct{ word, want string }{
		{"timeot", "timeout"},
		{"tiemout", "timeout"},
		{"Timeout", "timeout"},
		{"MaxAttempts", "max_attempts"},
		{"pool-size", "pool_size"},
		{"abl", "abi"},
		{"attempts", "max_attempts"},
		{"memory_limit", "memory"},
		{"x", ""},
		{"colour", ""},
		{"", ""},
		{strings.Repeat("timeout", 10), ""},
	} {
		if got := text.Nearest(tt.word, known); got != tt.want {
			t.Errorf("Nearest(%q): %q, want %q", tt.word, got, tt.want)
		}
	}
}

// wantSafe fails for text that a terminal or a reader could mistake for
// something else. It lists what is dangerous itself, since Safe, which lists
// what is fine, is under test.
func wantSafe(t *testing.T, what, got, except string) {
	t.Helper()
	if !utf8.ValidString(got) {
		t.Fatalf("%s is not valid UTF-8: %q", what, got)
	}
	for _, r := range got {
		dangerous := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
		if dangerous && r != 0x200c && r != 0x200d && !strings.ContainsRune(except, r) {
			t.Fatalf("%s has %U: %q", what, r, got)
		}
	}
}

// FuzzText: whatever the input, the output is safe, and as short as promised.
func FuzzText(f *testing.F) {
	f.Add("a\x1b[2J\u202e\xff\r\n\u2028\U000e0041\u200d", 10)
	f.Add("\x9b31m\u009b\x7f\x00é", 3)
	for _, tt := range escapes {
		f.Add(tt.in, 4)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = max(min(most, 1<<16), 0)
		wantSafe(t, "Escape", text.Escape(s, ""), "")
		wantSafe(t, "Escape with lines", text.Escape(s, "\n\t"), "\n\t")
		wantSafe(t, "Indent", text.Indent(s), "\n\t")
		wantSafe(t, "Quote", text.Quote(s, most), "")
		wantSafe(t, "Message", text.Message(s), "")
		line := text.Line(s, most)
		wantSafe(t, "Line", line, "")
		if n := len(strings.TrimSuffix(line, text.Cut)); n > most {
			t.Fatalf("Line: %d bytes of at most %d", n, most)
		}
		if got := text.Clip(s, most); len(got) > most+len("…") && got != s || len(s) <= most && got != s {
			t.Fatalf("Clip(%q, %d) = %q", s, most, got)
		}
		if text.IsText([]byte(s)) {
			wantSafe(t, "IsText", s, "\r\n\t")
		}
		wantSameJSON(t, s)
	})
}

// wantSameJSON checks that JSON is safe after EscapeJSON, and means the same.
func wantSameJSON(t *testing.T, s string) {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var before, after string
	escaped := text.EscapeJSON(data)
	wantSafe(t, "EscapeJSON", string(escaped), "")
	if json.Unmarshal(data, &before) != nil || json.Unmarshal(escaped, &after) != nil || before != after {
		t.Fatalf("EscapeJSON(%s) = %s", data, escaped)
	}
}
