package hostcall

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Escape returns text from a guest in a form that is safe in a line of a log,
// on a terminal and in a message: control characters, ANSI and OSC sequences
// by their ESC, line breaks of all sorts, characters that turn the direction
// of text or don't show, and broken UTF-8 appear as \n, \x1b, \u202e and the
// like. Over most bytes it is cut and marked; the mark comes on top.
func Escape(text []byte, most int) string {
	return string(appendLine(nil, text, most))
}

// appendLine appends msg, escaped, to b, in at most `most` bytes before the mark.
func appendLine(b, msg []byte, most int) []byte {
	start := len(b)
	for len(msg) > 0 {
		r, size := utf8.DecodeRune(msg)
		before := len(b)
		if r < utf8.RuneSelf && r >= ' ' && r != 0x7f {
			b = append(b, byte(r))
		} else {
			b = appendRune(b, r, msg[:size])
		}
		if len(b)-start > most {
			return append(b[:before], cut...)
		}
		msg = msg[size:]
	}
	return b
}

func appendRune(b []byte, r rune, raw []byte) []byte {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Appendf(b, `\x%02x`, raw[0])
	case r == '\n':
		return append(b, `\n`...)
	case r == '\r':
		return append(b, `\r`...)
	case r == '\t':
		return append(b, `\t`...)
	case r < utf8.RuneSelf:
		return fmt.Appendf(b, `\x%02x`, r)
	case r == 0x200c || r == 0x200d:
		// The joiners are needed to write several languages and emoji.
		return append(b, raw...)
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
		if r > 0xffff {
			return fmt.Appendf(b, `\U%08x`, r)
		}
		return fmt.Appendf(b, `\u%04x`, r)
	}
	return append(b, raw...)
}
