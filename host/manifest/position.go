package manifest

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The TOML library tells the position of a syntax error, but not where a key
// or value stands that it has read. scan finds that out: it walks the text
// once and notes where each key begins and each value, in the order in which
// the library lists the keys. It runs before the library does, and also holds
// off what the library would take seconds or gigabytes for.
const (
	maxNesting  = 16  // of arrays and inline tables in each other, and parts of a dotted key
	maxKeyBytes = 512 // of a key as it is written, with all its parts
)

// place is where a key and its value begin, as offsets into the text. The
// value of a [section] is its header.
type place struct{ key, value int }

// scanner walks a text that may or may not be TOML. It always gets to the end.
type scanner struct {
	text   string
	at     int
	places []place
	// limit is what is too deep or too long at the offset limitAt; empty = nothing is.
	limit   string
	limitAt int
}

func scan(text string) *scanner {
	s := &scanner{text: text}
	for s.blank(); s.more(); s.blank() {
		s.forward(func() {
			if s.text[s.at] == '[' {
				s.header()
			} else {
				s.pair(0)
			}
		})
	}
	return s
}

func (s *scanner) more() bool { return s.at < len(s.text) }

// forward calls step and moves on by a byte when that didn't move at all.
func (s *scanner) forward(step func()) {
	before := s.at
	step()
	if s.at == before {
		s.at++
	}
}

// stop notes a limit and ends the walk.
func (s *scanner) stop(at int, format string, args ...any) {
	if s.limit == "" {
		s.limit, s.limitAt = fmt.Sprintf(format, args...), at
	}
	s.at = len(s.text)
}

// blank skips white space, commas and comments.
func (s *scanner) blank() {
	for s.more() {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n', ',':
			s.at++
		case '#':
			s.until("\n")
		default:
			return
		}
	}
}

// until skips to the first of the bytes, which stays.
func (s *scanner) until(stops string) {
	if i := strings.IndexAny(s.text[s.at:], stops); i >= 0 {
		s.at += i
	} else {
		s.at = len(s.text)
	}
}

func (s *scanner) header() {
	s.places = append(s.places, place{s.at, s.at})
	for s.more() && s.text[s.at] == '[' {
		s.at++
	}
	s.key(']')
	for s.more() && s.text[s.at] == ']' {
		s.at++
	}
}

func (s *scanner) pair(depth int) {
	n, start := len(s.places), s.at
	s.places = append(s.places, place{s.at, s.at})
	s.key('=')
	if !s.more() || s.text[s.at] != '=' {
		return
	}
	s.at++
	for s.more() && (s.text[s.at] == ' ' || s.text[s.at] == '\t') {
		s.at++
	}
	s.places[n] = place{start, s.at}
	s.value(depth)
}

// key skips a key up to the byte that ends it, or the end of the line.
func (s *scanner) key(end byte) {
	start, parts := s.at, 1
	for s.more() {
		switch c := s.text[s.at]; c {
		case end, '\n':
			if s.at-start > maxKeyBytes {
				s.stop(start, "a key of %d bytes is longer than %d", s.at-start, maxKeyBytes)
			} else if parts > maxNesting {
				s.stop(start, "a key of %d parts has more than %d", parts, maxNesting)
			}
			return
		case '"', '\'':
			s.quoted(c)
		case '.':
			parts++
			s.at++
		default:
			s.at++
		}
	}
}

func (s *scanner) value(depth int) {
	if depth > maxNesting {
		s.stop(s.at, "values are nested deeper than %d", maxNesting)
		return
	}
	rest := s.text[s.at:]
	switch {
	case rest == "":
	case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, `'''`):
		s.multiline(rest[:3])
	case rest[0] == '"', rest[0] == '\'':
		s.quoted(rest[0])
	case rest[0] == '[':
		s.container(']', func() { s.value(depth + 1) })
	case rest[0] == '{':
		s.container('}', func() { s.pair(depth + 1) })
	default:
		s.until(",]}#\n")
	}
}

func (s *scanner) container(end byte, item func()) {
	s.at++
	for s.blank(); s.more() && s.text[s.at] != end; s.blank() {
		s.forward(item)
	}
	s.at = min(s.at+1, len(s.text))
}

// quoted skips a string on one line; only "…" has escapes.
func (s *scanner) quoted(quote byte) {
	for s.at++; s.more() && s.text[s.at] != '\n'; s.at++ {
		switch s.text[s.at] {
		case quote:
			s.at++
			return
		case '\\':
			if quote == '"' {
				s.at++
			}
		}
	}
	s.at = min(s.at, len(s.text))
}

// multiline skips a string in triple quotes. Up to two more quotes before the
// closing three belong to the string.
func (s *scanner) multiline(quotes string) {
	for s.at += 3; s.more(); s.at++ {
		if quotes[0] == '"' && s.text[s.at] == '\\' {
			s.at++
			continue
		}
		if strings.HasPrefix(s.text[s.at:], quotes) {
			s.at += 3
			for range 2 {
				if s.more() && s.text[s.at] == quotes[0] {
					s.at++
				}
			}
			return
		}
	}
	s.at = min(s.at, len(s.text))
}

// positions finds places by their path and turns offsets into lines and columns.
type positions struct {
	text   string
	lines  []int // the offset at which each line begins
	places map[string]place
	stated map[string]bool // the path has a line of its own, rather than being part of another's
}

func newPositions(text string) *positions {
	ps := &positions{text: text, lines: []int{0}, places: map[string]place{}, stated: map[string]bool{}}
	for i := range len(text) {
		if text[i] == '\n' {
			ps.lines = append(ps.lines, i+1)
		}
	}
	return ps
}

func pathKey(path []string) string { return strings.Join(path, "\x00") }

// note remembers where a path stands: at the first line of its own, else where
// it first appears as the beginning of another.
func (ps *positions) note(path []string, p place) {
	for i := 1; i < len(path); i++ {
		if k := pathKey(path[:i]); !ps.has(k) {
			ps.places[k] = p
		}
	}
	k := pathKey(path)
	if !ps.has(k) || !ps.stated[k] {
		ps.places[k], ps.stated[k] = p, true
	}
}

func (ps *positions) has(key string) bool {
	_, ok := ps.places[key]
	return ok
}

// find returns where the path stands, or else the nearest section above it.
func (ps *positions) find(path []string) (p place, ok bool) {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if p, ok = ps.places[pathKey(path)]; ok {
			return p, true
		}
	}
	return place{}, false
}

// lineColumn converts an offset; both count from 1, the column in characters.
func (ps *positions) lineColumn(offset int) (line, column int) {
	offset = min(offset, len(ps.text))
	line, exact := slices.BinarySearch(ps.lines, offset)
	if exact {
		line++
	}
	return line, utf8.RuneCountInString(ps.text[ps.lines[line-1]:offset]) + 1
}
