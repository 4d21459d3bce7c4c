package text

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Cut marks a line of [AppendLine] that was too long.
const Cut = " …(cut)"

// Escape returns s as one line. What isn't [Safe], including invalid UTF-8,
// appears as \n, \x1b, \u202e and the like, as in Go. The characters of keep,
// such as "\n\t", stay.
func Escape(s, keep string) string {
	fine := func(r rune) bool { return Safe(r) || strings.ContainsRune(keep, r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !fine(r) }) < 0 {
		return s
	}
	b := make([]byte, 0, len(s)+16)
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if strings.ContainsRune(keep, r) {
			b = append(b, s[:size]...)
		} else {
			b = appendRune(b, r, s[:size])
		}
		s = s[size:]
	}
	return string(b)
}

// Indent escapes a text of several lines and indents all but the first, so that
// none can be mistaken for a separate message.
func Indent(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, line := range lines {
		lines[i] = Escape(line, "\t")
	}
	return strings.Join(lines, "\n    ")
}

// Line is [Escape] with at most that many bytes: a longer line is cut and
// marked with [Cut], which is added to that. No escape sequence is split.
func Line(s string, most int) string { return string(AppendLine(nil, []byte(s), most)) }

// AppendLine appends what [Line] returns for s to b.
func AppendLine(b, s []byte, most int) []byte {
	start := len(b)
	for len(s) > 0 {
		r, size := utf8.DecodeRune(s)
		before := len(b)
		if r < utf8.RuneSelf && r >= ' ' && r != 0x7f {
			b = append(b, byte(r))
		} else {
			b = appendRune(b, r, s[:size])
		}
		if len(b)-start > most {
			return append(b[:before], Cut...)
		}
		s = s[size:]
	}
	return b
}

// appendRune appends a character, escaped if necessary; raw are its bytes.
func appendRune[T string | []byte](b []byte, r rune, raw T) []byte {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Appendf(b, `\x%02x`, raw[0])
	case Safe(r):
		return append(b, raw...)
	case r == '\n':
		return append(b, `\n`...)
	case r == '\r':
		return append(b, `\r`...)
	case r == '\t':
		return append(b, `\t`...)
	case r < utf8.RuneSelf:
		return fmt.Appendf(b, `\x%02x`, r)
	case r > 0xffff:
		return fmt.Appendf(b, `\U%08x`, r)
	}
	return fmt.Appendf(b, `\u%04x`, r)
}

// IsText reports whether data can be shown on a terminal unchanged, over
// several lines: a carriage return is allowed only before a line feed.
func IsText(data []byte) bool {
	if !utf8.Valid(data) {
		return false
	}
	for i, r := range string(data) {
		switch {
		case Safe(r), r == '\n', r == '\t':
		case r == '\r' && i+1 < len(data) && data[i+1] == '\n':
		default:
			return false
		}
	}
	return true
}

// EscapeJSON escapes what encoding/json leaves alone but terminals may interpret: DEL, the C1
// controls, bidirectional controls. The result is equivalent JSON.
func EscapeJSON(data []byte) []byte {
	harmless := func(r rune) bool { return r < 0x7f || Safe(r) }
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
