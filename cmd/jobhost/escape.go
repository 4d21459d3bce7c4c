package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// mostMessage bounds the messages that are shown, in bytes: a server or a
// worker wrote them.
const mostMessage = 4 << 10

// printable returns s in one line that no terminal takes for a command:
// everything that doesn't print is escaped as Go would, bidirectional
// controls and broken UTF-8 included.
func printable(s string) string { return escape(s, "") }

// printableText is printable for a text of several lines: line ends and tabs stay.
func printableText(s string) string { return escape(s, "\n\t") }

// escape is printable but for the characters of except.
func escape(s, except string) string {
	fine := func(r rune) bool { return unicode.IsPrint(r) || strings.ContainsRune(except, r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !fine(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case fine(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += n
	}
	return b.String()
}

// indent escapes a text of several lines and sets its further lines off, so
// that none can be taken for a message of its own.
func indent(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, line := range lines {
		lines[i] = escape(line, "\t")
	}
	return strings.Join(lines, "\n    ")
}

// clip shortens a message.
func clip(s string) string {
	if len(s) <= mostMessage {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(s[:mostMessage], ""), len(s))
}

// isText reports whether data can be shown on a terminal as it is.
func isText(data []byte) bool {
	if !utf8.Valid(data) {
		return false
	}
	for i, r := range string(data) {
		switch {
		case unicode.IsPrint(r), r == '\n', r == '\t':
		case r == '\r' && i+1 < len(data) && data[i+1] == '\n':
		default:
			return false
		}
	}
	return true
}

// escapeJSON escapes what encoding/json leaves alone but terminals may not:
// DEL, the C1 controls, bidirectional controls. It is the same JSON afterwards.
func escapeJSON(data []byte) []byte {
	harmless := func(r rune) bool { return r < 0x7f || unicode.IsPrint(r) }
	if strings.IndexFunc(string(data), func(r rune) bool { return !harmless(r) }) < 0 {
		return data
	}
	out := make([]byte, 0, len(data)+16)
	for _, r := range string(data) {
		if harmless(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}
