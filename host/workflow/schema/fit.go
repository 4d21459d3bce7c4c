package schema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/jobhost/jobhost/internal/text"
)

// maxDepth is the depth to which schemas are compared; anything deeper is assumed to fit.
const maxDepth = 16

// Array returns the schema of lists whose elements s describes; nil for nil.
func Array(s *Schema) *Schema {
	if s == nil {
		return nil
	}
	// References inside would not find their root, so it is kept.
	if m, ok := s.doc.(map[string]any); ok {
		return &Schema{doc: arrayOf{m}}
	}
	return nil
}

// arrayOf stands for {"type": "array", "items": …} of a schema with its own root.
type arrayOf struct{ items map[string]any }

// Element returns the schema of the elements of lists that s describes; nil = unknown.
func Element(s *Schema) *Schema {
	if s == nil {
		return nil
	}
	if a, ok := s.doc.(arrayOf); ok {
		return &Schema{doc: a.items}
	}
	m := Resolve(s.doc, s.doc)
	items, ok := m["items"].(map[string]any)
	if !ok || m["prefixItems"] != nil || m["type"] != "array" {
		return nil
	}
	if _, refers := m["$defs"]; refers {
		return nil
	}
	return &Schema{doc: items}
}

// Mismatch says why no value that from describes can fit to, or "" if one can: uncertain
// cases are left to the values. Nil describes anything.
func Mismatch(from, to *Schema) string {
	if from == nil || to == nil {
		return ""
	}
	if a, ok := from.doc.(arrayOf); ok {
		b, ok := to.doc.(arrayOf)
		if ok {
			return mismatch("", side{a.items, a.items}, side{b.items, b.items}, 0)
		}
		return mismatch("", side{map[string]any{"type": "array"}, nil}, side{to.doc, to.doc}, 0)
	}
	if _, ok := to.doc.(arrayOf); ok {
		return mismatch("", side{from.doc, from.doc}, side{map[string]any{"type": "array"}, nil}, 0)
	}
	return mismatch("", side{from.doc, from.doc}, side{to.doc, to.doc}, 0)
}

// side is a schema and its document.
type side struct{ schema, root any }

func mismatch(path string, from, to side, depth int) string {
	if to.schema == false {
		return describe(path) + " may not be there"
	}
	f, t := Resolve(from.schema, from.root), Resolve(to.schema, to.root)
	if f == nil || t == nil || depth > maxDepth {
		return ""
	}
	ft, tt := typesOf(f), typesOf(t)
	if ft != nil && tt != nil && !slices.ContainsFunc(ft, func(a string) bool { return accepts(tt, a) }) {
		return fmt.Sprintf("%s is %s, and should be %s", describe(path), words(ft), words(tt))
	}
	if fv, tv := valuesOf(f), valuesOf(t); fv != nil && tv != nil {
		if !slices.ContainsFunc(fv, func(a any) bool { return slices.ContainsFunc(tv, func(b any) bool { return reflect.DeepEqual(a, b) }) }) {
			return describe(path) + " has none of the values that it should have"
		}
	}
	// Only if both sides are certainly objects are there members to compare.
	if !slices.Equal(ft, []string{"object"}) || tt != nil && !slices.Contains(tt, "object") {
		return ""
	}
	return members(path, side{f, from.root}, side{t, to.root}, depth)
}

// members compares the required members.
func members(path string, from, to side, depth int) string {
	f, t := from.schema.(map[string]any), to.schema.(map[string]any)
	fp, _ := f["properties"].(map[string]any)
	tp, _ := t["properties"].(map[string]any)
	needed := required(t)
	for _, name := range needed {
		if _, ok := fp[name]; !ok && Lacks(f, name) {
			return fmt.Sprintf("%s has no %s, which is required", describe(path), text.Quote(name, text.Short))
		}
	}
	given := required(f)
	for _, name := range slices.Sorted(maps.Keys(tp)) {
		if !slices.Contains(needed, name) && !slices.Contains(given, name) {
			continue // it can be omitted, which fits
		}
		p, ok := fp[name]
		if !ok {
			continue
		}
		if why := mismatch(path+"."+name, side{p, from.root}, side{tp[name], to.root}, depth+1); why != "" {
			return why
		}
	}
	return ""
}

// open lists keywords by which an object can have members that properties doesn't list.
func open() []string {
	return []string{
		"additionalProperties", "patternProperties", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "if", "not",
		"$dynamicRef", "dependentSchemas",
	}
}

// Lacks reports whether values of a schema have no member with a name that its properties
// don't list: because it forbids others, or lists some and says nothing about others. To
// allow others, a schema can say "additionalProperties": true.
func Lacks(s map[string]any, name string) bool {
	properties, _ := s["properties"].(map[string]any)
	if _, ok := properties[name]; ok {
		return false
	}
	if s["additionalProperties"] == false && s["patternProperties"] == nil {
		return true
	}
	if len(properties) == 0 {
		return false
	}
	return !slices.ContainsFunc(open(), func(k string) bool { _, ok := s[k]; return ok })
}

// Resolve follows references within a document: #, #/$defs/name and the like. It returns
// nil if there is nothing, or it is elsewhere.
func Resolve(s, root any) map[string]any {
	for range maxDepth {
		m, ok := s.(map[string]any)
		if !ok {
			return nil
		}
		ref, ok := m["$ref"].(string)
		if !ok {
			return m
		}
		rest, ok := strings.CutPrefix(ref, "#")
		if !ok || rest != "" && rest[0] != '/' {
			return nil
		}
		s = lookup(root, rest)
	}
	return nil
}

// lookup follows a JSON Pointer through objects.
func lookup(root any, pointer string) any {
	if pointer == "" {
		return root
	}
	for part := range strings.SplitSeq(pointer[1:], "/") {
		m, ok := root.(map[string]any)
		if !ok {
			return nil
		}
		root = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return root
}

// typesOf returns the types that a schema allows; nil = unspecified.
func typesOf(s map[string]any) []string {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var all []string
		for _, v := range t {
			if name, ok := v.(string); ok {
				all = append(all, name)
			}
		}
		return all
	}
	return nil
}

// accepts reports whether a value of type a can be one of these; any number can be whole.
func accepts(types []string, a string) bool {
	return slices.Contains(types, a) ||
		a == "integer" && slices.Contains(types, "number") || a == "number" && slices.Contains(types, "integer")
}

// valuesOf returns the values that a schema allows; nil = not listed. Numbers are left
// out, since 1 and 1.0 are the same.
func valuesOf(s map[string]any) []any {
	all, ok := s["enum"].([]any)
	if c, is := s["const"]; is {
		all, ok = []any{c}, true
	}
	if !ok || slices.ContainsFunc(all, func(v any) bool { _, isText := v.(string); return !isText }) {
		return nil
	}
	return all
}

func required(s map[string]any) []string {
	list, _ := s["required"].([]any)
	var names []string
	for _, v := range list {
		if name, ok := v.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

func describe(path string) string {
	if path == "" {
		return "it"
	}
	return text.Message(path[1:])
}

func words(types []string) string { return strings.Join(types, " or ") }
