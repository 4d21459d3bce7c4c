// Package text makes untrusted text fit for people: safe on a terminal, in a
// log and in a message, and short. Names, payloads, errors of libraries and the
// output of guests all pass through here.
package text

import (
	"fmt"
	"strings"
	"unicode"
)

// Safe reports whether a character may reach a terminal unchanged: Unicode
// defines it, and it leaves a mark or a space on the line. Controls,
// bidirectional controls, invisible characters, line separators and private
// ones are not safe. The two joiners are, though they are invisible: several
// languages and emoji need them.
func Safe(r rune) bool {
	const nonJoiner, joiner = 0x200c, 0x200d
	return unicode.IsGraphic(r) || r == nonJoiner || r == joiner
}

// Clip cuts a text after most bytes, marking the cut with an ellipsis.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Short is how much of a name or a value a message quotes, in bytes.
const Short = 60

// Quote quotes at most the first most bytes of a text, and states the total
// length if that is not all.
func Quote(s string, most int) string {
	if len(s) > most {
		return fmt.Sprintf("%q… (%d bytes)", strings.ToValidUTF8(s[:most], ""), len(s))
	}
	return fmt.Sprintf("%q", s)
}

// maxMessage bounds a message of a library, in bytes.
const maxMessage = 300

// Message makes one short line of an untrusted message, such as an error of a
// library that may quote its input. What isn't [Safe] becomes a blank.
func Message(s string) string {
	return strings.Map(func(r rune) rune {
		if Safe(r) {
			return r
		}
		return ' '
	}, Clip(s, maxMessage))
}
