package expr

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// kind is what is known of the type of a value.
type kind string

const (
	unknown kind = ""
	text    kind = "string"
	whole   kind = "integer"
	boolean kind = "boolean"
	list    kind = "array"
	object  kind = "object"
	moment  kind = "timestamp"
)

func (k kind) marker() string { return "@" + string(k) }

// shape is what is known of a value before there is one: from a JSON Schema, or
// because the host makes it. The zero value knows nothing. Schemas are followed
// step by step, as expressions do, since they can refer to themselves.
type shape struct {
	kind   kind
	schema map[string]any // nil = it comes from the host, or is unknown
	root   any            // of the schema, for references
	fields map[string]shape
	items  *shape
}

// schemaShape returns the shape of what a JSON Schema describes.
func schemaShape(schema json.RawMessage) shape {
	if len(schema) == 0 {
		return shape{}
	}
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	var root any
	if d.Decode(&root) != nil {
		return shape{}
	}
	return subShape(root, root)
}

func subShape(schema, root any) shape {
	m := resolve(schema, root)
	if m == nil {
		return shape{}
	}
	s := shape{schema: m, root: root}
	switch t, _ := m["type"].(string); t {
	case "string", "integer", "boolean", "array", "object":
		s.kind = kind(t)
	}
	return s
}

// resolve follows references within a document: #, #/$defs/name and the like.
// It returns nil for what says nothing, or says it elsewhere.
func resolve(schema, root any) map[string]any {
	for range 16 {
		m, ok := schema.(map[string]any)
		if !ok {
			return nil
		}
		ref, ok := m["$ref"].(string)
		if !ok {
			return m
		}
		rest, ok := strings.CutPrefix(ref, "#")
		if !ok {
			return nil
		}
		if schema = lookup(root, rest); schema == nil {
			return nil
		}
	}
	return nil
}

// lookup follows a JSON Pointer through objects.
func lookup(root any, pointer string) any {
	if pointer == "" {
		return root
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		m, ok := root.(map[string]any)
		if !ok {
			return nil
		}
		root = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return root
}

// open are keywords by which an object can have members that properties doesn't list.
var open = []string{"additionalProperties", "patternProperties", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "if", "not", "$dynamicRef", "dependentSchemas"}

// field returns the shape of a member. missing says that there is none of that
// name: the schema lists the members and does not say that there can be others.
func (s shape) field(name string) (member shape, missing bool) {
	if s.fields != nil {
		f, ok := s.fields[name]
		return f, !ok
	}
	properties, _ := s.schema["properties"].(map[string]any)
	if p, ok := properties[name]; ok {
		return subShape(p, s.root), false
	}
	if s.kind != unknown && s.kind != object {
		return shape{}, true
	}
	if s.schema["additionalProperties"] == false && s.schema["patternProperties"] == nil {
		return shape{}, true
	}
	if len(properties) == 0 || slices.ContainsFunc(open, func(k string) bool { _, ok := s.schema[k]; return ok }) {
		return shape{}, false
	}
	return shape{}, true
}

// names returns the members that are known.
func (s shape) names() []string {
	if s.fields != nil {
		return slices.Sorted(maps.Keys(s.fields))
	}
	properties, _ := s.schema["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// element returns the shape of the elements of a list.
func (s shape) element() shape {
	switch {
	case s.items != nil:
		return *s.items
	case s.kind == list && s.schema["prefixItems"] == nil:
		return subShape(s.schema["items"], s.root)
	}
	return shape{}
}

// nullable forgets the type, since there can be null instead.
func (s shape) nullable() shape {
	s.kind = unknown
	return s
}

// stepShape returns the shape of steps.NAME.
func stepShape(s Step) shape {
	output := schemaShape(s.Output)
	if one := output; s.List {
		output = shape{kind: list, items: &one}
	}
	failure := shape{fields: map[string]shape{
		"code": {kind: text}, "category": {kind: text}, "severity": {kind: text}, "message": {kind: text},
		"retryable": {kind: boolean}, "task": {kind: whole}, "attempt": {kind: whole},
	}}
	return shape{kind: object, fields: map[string]shape{"status": {kind: text}, "output": output.nullable(), "error": failure}}
}

// workflowShape is the shape of workflow.
func workflowShape() shape {
	return shape{kind: object, fields: map[string]shape{
		"id": {kind: text}, "name": {kind: text}, "labels": {kind: object, schema: map[string]any{}}, "started": {kind: moment},
	}}
}
