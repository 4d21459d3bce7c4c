package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/jobhost/jobhost/internal/text"
)

// LoadHost reads only the section [host] of the manifest at path: all that a
// client needs to find the host. Whatever is wrong in other sections, with
// plugins or with secrets is the host's business, so it is no error here.
func LoadHost(path string) (*Host, error) {
	r, text, err := openBeside(path)
	if err != nil {
		return nil, err
	}
	doc := r.decode(text)
	if above := aboveFault(text); doc == nil && above != "" {
		r.faults = nil
		doc = r.decode(above)
	}
	m := &Manifest{Dir: r.dir, Host: defaultHost(r.dir)}
	if doc != nil {
		r.lost(doc, "host")
		r.host(doc, m)
	}
	if len(r.faults) > 0 {
		return nil, r.faults.settle(path)
	}
	return &m.Host, nil
}

// LoadStores is [LoadHost] for programs that read and write the host's files: it reads
// [payload], too, and is stricter, since a payload store that is overlooked is missing from
// a backup. In the manifest that it returns are only Host and Payload, without keys
// and without the values of secrets.
func LoadStores(path string) (*Manifest, error) {
	r, text, err := openBeside(path)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Dir: r.dir, Host: defaultHost(r.dir)}
	if doc := r.decode(text); doc != nil {
		r.lost(doc, "host", "payload", "cluster")
		r.host(doc, m)
		r.cluster(doc, m)
		if section, ok := doc["payload"].(map[string]any); ok {
			delete(section, "key")
		}
		r.payloads(doc, m)
	}
	if len(r.faults) > 0 {
		return nil, r.faults.settle(path)
	}
	return m, nil
}

// openBeside returns the text of a manifest, and a reader of it that leaves alone what is
// for the host itself.
func openBeside(path string) (r *reader, text string, err error) {
	data, err := read(path)
	if err != nil {
		return nil, "", err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, "", fmt.Errorf("find the manifest's folder: %w", err)
	}
	text = string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	return &reader{options: options{dir: dir, beside: true}, file: path, positions: newPositions(text)}, text, nil
}

// aboveFault returns the sections above the one in which a text stops being TOML, if
// [host] is among them; else "".
func aboveFault(text string) string {
	_, err := toml.Decode(text, &map[string]any{})
	at, ok := errors.AsType[toml.ParseError](err)
	if !ok || at.Position.Start > len(text) {
		return ""
	}
	end := strings.LastIndex(text[:at.Position.Start], "\n[") + 1
	above, below := text[:end], text[end:]
	doc := map[string]any{}
	if _, err := toml.Decode(above, &doc); err != nil || doc["host"] == nil || strings.Contains(below, "\n[host]") {
		return ""
	}
	return above
}

// lost reports what was probably meant to be one of the sections that are read, or in
// [host]: else its settings would have their defaults without a word.
func (r *reader) lost(doc map[string]any, read ...string) {
	for name, v := range doc {
		if slices.Contains(sections, name) {
			continue
		}
		if slices.Contains(read, text.Nearest(name, sections)) || slices.Contains(hostNames, name) {
			r.unknownSection(name, v)
		}
	}
}
