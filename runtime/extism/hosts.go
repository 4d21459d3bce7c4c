package extism

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jobhost/jobhost/internal/text"
)

// Hosts are the allowed_hosts of a manifest: patterns, one of which must match the whole name of a host,
// without its port. In a pattern * and ** stand for any characters, including dots, ? for one, [a-z] and
// [!a-z] for one of a set, {a,b} for either, and \ escapes the next character. Case is ignored.
// {a,b} for either, and \ takes a meaning away. Case doesn't matter.
//
// Hosts only narrow what the host allows: the host judges where a name leads,
// and whether a worker may go there.
type Hosts struct {
	texts    []string // as given
	patterns []*regexp.Regexp
}

// maxHosts bounds the patterns of a plugin, and maxHostPattern one of them.
const (
	maxHosts       = 1000
	maxHostPattern = 512
)

// NewHosts parses patterns. No patterns allow nothing.
func NewHosts(patterns []string) (*Hosts, error) {
	if len(patterns) > maxHosts {
		return nil, fmt.Errorf("%d patterns are more than %d", len(patterns), maxHosts)
	}
	h := &Hosts{texts: slices.Clone(patterns)}
	for _, pattern := range patterns {
		if len(pattern) > maxHostPattern {
			return nil, fmt.Errorf("a pattern of %d bytes is longer than %d", len(pattern), maxHostPattern)
		}
		shown := text.Line(pattern, 100)
		if strings.ContainsAny(pattern, "/:") {
			return nil, fmt.Errorf("%q is not a pattern for the name of a host: leave out scheme, port and path", shown)
		}
		text, err := translate(pattern)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", shown, err)
		}
		re, err := regexp.Compile(text)
		if err != nil { // such as a range from z to a
			return nil, fmt.Errorf("pattern %q makes no sense", shown)
		}
		h.patterns = append(h.patterns, re)
	}
	return h, nil
}

// Allow reports whether a pattern matches. nil allows every host.
func (h *Hosts) Allow(name string) bool {
	if h == nil {
		return true
	}
	for _, re := range h.patterns {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}

// translate converts a pattern to a regular expression, which Go matches in
// linear time.
func translate(pattern string) (string, error) {
	var b strings.Builder
	b.WriteString("(?is)^(?:")
	depth := 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteByte('.')
		case '[':
			set, n, err := translateSet(pattern[i+1:])
			if err != nil {
				return "", err
			}
			b.WriteString(set)
			i += n
		case '{':
			depth++
			b.WriteString("(?:")
		case '}':
			if depth--; depth < 0 {
				return "", fmt.Errorf("a } without its {")
			}
			b.WriteByte(')')
		case ',':
			if depth > 0 {
				c = '|'
			}
			b.WriteByte(c)
		case '\\':
			if i++; i == len(pattern) {
				return "", fmt.Errorf("a \\ at the end")
			}
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	if depth > 0 {
		return "", fmt.Errorf("a { without its }")
	}
	b.WriteString(")$")
	return b.String(), nil
}

// translateSet translates what follows a [ up to its ], and returns its length.
func translateSet(rest string) (set string, n int, err error) {
	end := strings.IndexByte(rest, ']')
	if end < 0 {
		return "", 0, fmt.Errorf("a [ without its ]")
	}
	members, not := strings.CutPrefix(rest[:end], "!")
	if members == "" {
		return "", 0, fmt.Errorf("an empty [ ]")
	}
	escape := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`, `&`, `\&`).Replace
	if not {
		return "[^" + escape(members) + "]", end + 1, nil
	}
	return "[" + escape(members) + "]", end + 1, nil
}

// MarshalBinary writes the patterns, one per line, for hosts that run a plugin in another process.
func (h *Hosts) MarshalBinary() ([]byte, error) { return []byte(strings.Join(h.texts, "\n")), nil }

// UnmarshalBinary reads what MarshalBinary has written.
func (h *Hosts) UnmarshalBinary(text []byte) error {
	var patterns []string
	if len(text) > 0 {
		patterns = strings.Split(string(text), "\n")
	}
	read, err := NewHosts(patterns)
	if err == nil {
		*h = *read
	}
	return err
}
