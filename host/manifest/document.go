package manifest

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/jobhost/jobhost/internal/text"
)

// Document is a TOML file that is no manifest and is read as strictly as one:
// a key that nobody asked for is a fault, and each fault has its line.
type Document struct{ r *reader }

// ReadDocument reads a document of which name is what its faults call the file.
// Root is empty for a file that has nothing in it, or is no TOML.
func ReadDocument(name string, data []byte) (d *Document, root *Table) {
	text := string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	d = &Document{&reader{file: name, positions: newPositions(text)}}
	values := map[string]any{}
	root = &Table{doc: d, values: values}
	s := scan(text)
	switch {
	case len(text) > MaxBytes:
		d.r.faultAt(-1, "", fmt.Sprintf("the file is larger than %v", Size(MaxBytes)), "")
		return d, root
	case !utf8.ValidString(text):
		d.r.faultAt(firstInvalid(text), "", "the file is not valid UTF-8", "save it as UTF-8")
		return d, root
	case s.limit != "":
		d.r.faultAt(s.limitAt, "", s.limit, "")
		return d, root
	}
	meta, err := toml.Decode(text, &values)
	if err != nil {
		d.r.syntax(err)
		clear(values)
		return d, root
	}
	number := numberer{}
	keys := meta.Keys()
	for i, key := range keys[:min(len(keys), len(s.places))] {
		d.r.positions.note(number.path(key, s.places[i], text), s.places[i])
	}
	return d, root
}

// Err returns the [Faults] of the document that were found so far, or nil.
func (d *Document) Err() error {
	if len(d.r.faults) == 0 {
		return nil
	}
	faults := d.r.faults.settle(d.r.file)
	for _, f := range faults {
		f.Key = elements.ReplaceAllString(f.Key, "[$1]")
	}
	return faults
}

// elements are the tables of a list in the key of a fault, by their numbers.
var elements = regexp.MustCompile(`\."#([0-9]+)"`)

// Table is a table of a document. Each setting is asked for by its name and
// type; what it may not be is noted as a fault of the document, and the zero
// value is returned. All that was not asked for by the time of Close is a fault.
type Table struct {
	doc    *Document
	path   []string
	values map[string]any
	asked  []string
}

// Has reports whether the table has a setting.
func (t *Table) Has(name string) bool {
	_, ok := t.look(name)
	return ok
}

// Names returns the names of what is in the table, sorted.
func (t *Table) Names() []string { return slices.Sorted(maps.Keys(t.values)) }

func (t *Table) look(name string) (any, bool) {
	if !slices.Contains(t.asked, name) {
		t.asked = append(t.asked, name)
	}
	v, ok := t.values[name]
	return v, ok
}

func (t *Table) at(name string) []string { return append(slices.Clone(t.path), name) }

// Fault notes that the value of a setting can't be what it is.
func (t *Table) Fault(name string, err error) { t.doc.r.faultValue(t.at(name), err) }

// Faultf notes a fault of a setting, with what to do about it.
func (t *Table) Faultf(name, hint, format string, args ...any) {
	t.Fault(name, wrong(hint, format, args...))
}

// Missing notes that the table lacks a setting.
func (t *Table) Missing(name, hint string) {
	t.doc.r.faultKey(t.path, t.path, name+" is missing", hint)
}

// typed returns a setting of a type; false = it isn't there, or is another.
func typed[T any](t *Table, name, hint string) (v T, ok bool) {
	given, there := t.look(name)
	if !there {
		return v, false
	}
	if v, ok = given.(T); !ok {
		t.Fault(name, mismatch(given, hint))
	}
	return v, ok
}

// Text returns a text.
func (t *Table) Text(name string) string {
	v, _ := typed[string](t, name, "put it in quotes")
	return v
}

// OneOf returns a text that is one of some names; empty = it isn't there.
func (t *Table) OneOf(name string, names ...string) string {
	v := t.Text(name)
	if v != "" && !slices.Contains(names, v) {
		t.Fault(name, wrong("use "+quoteList(names), "%s is not possible here", text.Quote(v, text.Short)))
		return ""
	}
	return v
}

// Whole returns a whole number between low and high; otherwise, if it isn't
// there or is a fault, the other one.
func (t *Table) Whole(name string, low, high, otherwise int64) int64 {
	v, ok := typed[int64](t, name, "write a whole number without quotes")
	switch {
	case !ok:
		return otherwise
	case v < low || v > high:
		t.Faultf(name, "", "%d is not between %d and %d", v, low, high)
		return otherwise
	}
	return v
}

// Number returns a number; false = it isn't there.
func (t *Table) Number(name string) (float64, bool) {
	v, there := t.look(name)
	var n float64
	if !there {
		return 0, false
	}
	if err := number(&n).set(v); err != nil {
		t.Fault(name, err)
		return 0, false
	}
	return n, true
}

// Flag returns true or false; given = false when it isn't there.
func (t *Table) Flag(name string) (value, given bool) {
	return typed[bool](t, name, "write true or false without quotes")
}

// Duration returns a duration up to most; 0 = it isn't there.
func (t *Table) Duration(name string, most time.Duration) time.Duration {
	v, there := t.look(name)
	var d time.Duration
	if !there {
		return 0
	}
	if err := duration(&d, 0, most).set(v); err != nil {
		t.Fault(name, err)
	}
	return d
}

// Texts returns a list of texts; nil = it isn't there.
func (t *Table) Texts(name string) []string {
	list, ok := typed[[]any](t, name, `write a list of texts, such as ["a", "b"]`)
	if !ok {
		return nil
	}
	texts := make([]string, 0, len(list))
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			t.Fault(name, mismatch(v, "put each entry in quotes"))
			return nil
		}
		texts = append(texts, s)
	}
	return texts
}

// TextTable returns a table of texts; nil = it isn't there.
func (t *Table) TextTable(name string) map[string]string {
	table := t.Table(name)
	if table == nil {
		return nil
	}
	texts := map[string]string{}
	for _, key := range table.Names() {
		texts[key] = table.Text(key)
	}
	return texts
}

// Value returns whatever is there, as the TOML library read it; nil = nothing.
func (t *Table) Value(name string) any {
	v, _ := t.look(name)
	return v
}

// Table returns a table in this one; nil = it isn't there.
func (t *Table) Table(name string) *Table {
	v, ok := typed[map[string]any](t, name, "write it as a table: "+keyText(t.at(name))+" = { … }")
	if !ok {
		return nil
	}
	return &Table{doc: t.doc, path: t.at(name), values: v}
}

// Tables returns the tables of a list.
func (t *Table) Tables(name string) []*Table {
	v, there := t.look(name)
	if !there {
		return nil
	}
	list, err := tablesOf(v, "{ … }")
	if err != nil {
		t.Fault(name, err)
		return nil
	}
	all := make([]*Table, len(list))
	for i, values := range list {
		all[i] = &Table{doc: t.doc, path: append(t.at(name), element(i+1)), values: values}
	}
	return all
}

// Close reports the keys that were not asked for.
func (t *Table) Close() {
	for _, name := range t.Names() {
		if slices.Contains(t.asked, name) {
			continue
		}
		hint := "the settings here are " + strings.Join(t.asked, ", ")
		if near := text.Nearest(name, t.asked); near != "" {
			hint = "did you mean " + near + "?"
		}
		t.doc.r.faultKey(t.at(name), t.path, keyText([]string{name})+" is not a setting", hint)
	}
}
