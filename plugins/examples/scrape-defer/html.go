package main

import (
	"bytes"
	"encoding/hex"
	"hash/fnv"
	"html"
	"net/url"
	"slices"
	"strings"
	"time"
)

// rememberFor is how long a crawl remembers which pages it has seen.
const rememberFor = 24 * time.Hour

// read finds the title of a page and its links, as absolute URLs without
// fragments, each once. It parses tags and not all of HTML: enough for
// well-formed pages, and harmless for others.
func read(base *url.URL, page []byte) (title string, links []string) {
	links = []string{}
	for rest := page; len(rest) > 0; {
		var name string
		var attributes []byte
		name, attributes, rest = nextTag(rest)
		switch {
		case name == "title" && title == "":
			end := max(bytes.IndexByte(rest, '<'), 0)
			title = strings.Join(strings.Fields(html.UnescapeString(string(rest[:end]))), " ")
		case name == "script" || name == "style":
			rest = afterElement(rest, name)
		case name == "a" && len(links) < maxLinks:
			to, err := base.Parse(strings.TrimSpace(html.UnescapeString(attribute(attributes, "href"))))
			if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
				continue
			}
			if link := clean(to); link != clean(base) && !slices.Contains(links, link) {
				links = append(links, link)
			}
		}
	}
	return strings.ToValidUTF8(title, "\uFFFD"), links
}

// nextTag returns the next opening tag: its name in lower case, what is between
// that and its end, and the rest. Comments are skipped.
func nextTag(text []byte) (name string, attributes, rest []byte) {
	begin := bytes.IndexByte(text, '<')
	if begin < 0 {
		return "", nil, nil
	}
	text = text[begin+1:]
	if bytes.HasPrefix(text, []byte("!--")) {
		_, rest, _ = bytes.Cut(text, []byte("-->"))
		return "", nil, rest
	}
	n := 0
	for n < len(text) && n < 20 && (text[n]|0x20 >= 'a' && text[n]|0x20 <= 'z' || text[n] >= '0' && text[n] <= '9') {
		n++
	}
	end, quote := n, byte(0)
	for ; end < len(text) && (quote != 0 || text[end] != '>'); end++ {
		switch c := text[end]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		}
	}
	if end == len(text) { // it was truncated
		return "", nil, nil
	}
	return strings.ToLower(string(text[:n])), text[n:end], text[end+1:]
}

// afterElement returns what follows the end of an element that contains text
// instead of tags; nothing if it has no end.
func afterElement(text []byte, name string) []byte {
	for len(text) > 0 {
		_, text, _ = bytes.Cut(text, []byte("</"))
		if len(text) >= len(name) && strings.EqualFold(string(text[:len(name)]), name) {
			return text[len(name):]
		}
	}
	return nil
}

// attribute returns the value of an attribute, "" without it.
func attribute(text []byte, name string) string {
	for len(text) > 0 {
		text = bytes.TrimLeft(text, " \t\r\n/")
		key := text[:indexAny(text, " \t\r\n=/")]
		text = bytes.TrimLeft(text[len(key):], " \t\r\n")
		if len(text) == 0 || text[0] != '=' {
			if len(key) == 0 && len(text) > 0 {
				text = text[1:]
			}
			continue
		}
		text = bytes.TrimLeft(text[1:], " \t\r\n")
		var value []byte
		if len(text) > 0 && (text[0] == '"' || text[0] == '\'') {
			end := indexAny(text[1:], string(text[0]))
			value, text = text[1:1+end], text[min(end+2, len(text)):]
		} else {
			value = text[:indexAny(text, " \t\r\n")]
			text = text[len(value):]
		}
		if strings.EqualFold(string(key), name) {
			return string(value)
		}
	}
	return ""
}

// indexAny is that of package bytes, but returns the end if nothing is found.
func indexAny(text []byte, chars string) int {
	if i := bytes.IndexAny(text, chars); i >= 0 {
		return i
	}
	return len(text)
}

// clean returns a URL without its fragment, and with a path.
func clean(u *url.URL) string {
	bare := *u
	bare.Fragment, bare.RawFragment, bare.User = "", "", nil
	if bare.Path == "" {
		bare.Path = "/"
	}
	return bare.String()
}

// sameSite reports whether a link stays on the site.
func sameSite(base *url.URL, link string) bool {
	to, err := url.Parse(link)
	return err == nil && to.Host == base.Host && to.Scheme == base.Scheme
}

// digest identifies a URL, in 32 hex digits.
func digest(s string) string {
	h := fnv.New128a()
	_, _ = h.Write([]byte(s))
	return hex.EncodeToString(h.Sum(nil))
}
