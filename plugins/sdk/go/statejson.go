package jobhost

import (
	"bytes"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonReader reads the JSON of states, to keep workers small. What it doesn't
// understand makes it bad, and then it reads nothing more.
type jsonReader struct {
	rest []byte
	bad  bool
}

// ended reports whether everything was read and understood.
func (r *jsonReader) ended() bool { return r.peek() == 0 && !r.bad && len(r.rest) == 0 }

func (r *jsonReader) event() (e StateEvent) {
	r.object(func(name string) {
		switch name {
		case "state":
			e.State = r.state()
		case "replay":
			e.Replay = string(r.raw()) == "true"
		case "sentinel":
			e.Sentinel = string(r.raw()) == "true"
		default:
			r.raw()
		}
	})
	return e
}

func (r *jsonReader) state() (s State) {
	r.object(func(name string) {
		switch name {
		case "job":
			s.Job = r.text()
		case "task":
			s.Task = int(r.number())
		case "tag":
			s.Tag = r.text()
		case "status":
			s.Status = int32(r.number())
		case "message":
			s.Message = r.text()
		case "payload":
			s.Payload = r.raw()
		case "timestamp":
			at, err := time.Parse(time.RFC3339Nano, r.text())
			s.Time, r.bad = at, r.bad || err != nil
		case "version":
			s.Version = r.number()
		default:
			r.raw()
		}
	})
	return s
}

// peek returns the next byte that is not a space; 0 = there is none.
func (r *jsonReader) peek() byte {
	for !r.bad && len(r.rest) > 0 {
		switch r.rest[0] {
		case ' ', '\t', '\n', '\r':
			r.rest = r.rest[1:]
		default:
			return r.rest[0]
		}
	}
	return 0
}

// take takes a required byte.
func (r *jsonReader) take(c byte) {
	if r.peek() != c {
		r.bad = true
		return
	}
	r.rest = r.rest[1:]
}

// object calls field with each name, to read the value.
func (r *jsonReader) object(field func(name string)) {
	r.take('{')
	for more := r.peek() != '}'; more && !r.bad; {
		name := r.text()
		r.take(':')
		field(name)
		if more = r.peek() == ','; more {
			r.take(',')
		}
	}
	r.take('}')
}

func (r *jsonReader) number() int64 {
	n, err := strconv.ParseInt(string(r.raw()), 10, 64)
	r.bad = r.bad || err != nil
	return n
}

// raw takes a value unchanged.
func (r *jsonReader) raw() []byte {
	r.peek()
	depth, quoted := 0, false
	for i := 0; i < len(r.rest) && !r.bad; i++ {
		switch c := r.rest[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
		case depth == 0 && (c == ',' || c == '}'): // delimiters of the enclosing value
			value := bytes.TrimRight(r.rest[:i:i], " \t\r\n")
			r.rest = r.rest[i:]
			r.bad = i == 0
			return value
		}
	}
	r.bad = true
	return nil
}

// text takes a string.
func (r *jsonReader) text() string {
	r.take('"')
	var text []byte
	for !r.bad && len(r.rest) > 0 {
		c := r.rest[0]
		r.rest = r.rest[1:]
		switch c {
		case '"':
			return string(text)
		case '\\':
			text = utf8.AppendRune(text, r.escaped())
		default:
			text = append(text, c)
		}
	}
	r.bad = true
	return ""
}

// escaped handles what follows a backslash.
func (r *jsonReader) escaped() rune {
	if len(r.rest) == 0 {
		r.bad = true
		return 0
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	switch c {
	case '"', '\\', '/':
		return rune(c)
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'u':
		return r.unicode()
	}
	r.bad = true
	return 0
}

// unicode reads the digits of a character, and its second surrogate if it has one.
func (r *jsonReader) unicode() rune {
	first := r.hex()
	if !utf16.IsSurrogate(first) || len(r.rest) < 2 || r.rest[0] != '\\' || r.rest[1] != 'u' {
		return first
	}
	r.rest = r.rest[2:]
	return utf16.DecodeRune(first, r.hex())
}

func (r *jsonReader) hex() rune {
	if len(r.rest) < 4 {
		r.bad = true
		return 0
	}
	n, err := strconv.ParseUint(string(r.rest[:4]), 16, 16)
	r.bad = r.bad || err != nil
	r.rest = r.rest[4:]
	return rune(n)
}
