// Package jsondepth tells how deep JSON is nested, without decoding it: what nests
// deeper than a reader's bound can't be read by anybody later.
package jsondepth

// Exceeds returns where valid JSON is nested more than most deep, or -1.
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
