// Package jsondepth measures how deep JSON is nested, without decoding it: what is
// nested deeper than a reader's bound could never be read again.
package jsondepth

// Exceeds returns the offset at which valid JSON is nested more than most levels deep, or -1.
func Exceeds(raw []byte, most int) int {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > most {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}
