package expr

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/jobhost/jobhost/host/workflow/schema"
)

// kind is what is known about the type of a value.
type kind string

const (
	unknown kind = ""
	chars   kind = "string"
	whole   kind = "integer"
	boolean kind = "boolean"
	list    kind = "array"
	object  kind = "object"
	moment  kind = "timestamp"
)

func (k kind) marker() string { return "@" + string(k) }

// shape is what is known about a value in advance: from a JSON Schema, or
// because the host creates it. The zero value knows nothing. Schemas are
// followed step by step, as expressions do, since they can be recursive.
type shape struct {
	kind   kind
	schema map[string]any // nil = it comes from the host, or is unknown
	root   any            // of the schema, for references
	fields map[string]shape
	items  *shape
}

// schemaShape returns the shape of values that a JSON Schema describes.
func schemaShape(text json.RawMessage) shape {
	if len(text) == 0 {
		return shape{}
	}
	root, err := schema.Decode(text)
	if err != nil {
		return shape{}
	}
	return subShape(root, root)
}

func subShape(sub, root any) shape {
	m := schema.Resolve(sub, root)
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

// field returns the shape of a member. missing says that there is no such
// member: the schema lists the members and does not say that there can be
// others.
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
	return shape{}, s.schema != nil && schema.Lacks(s.schema, name)
}

// names returns the known members.
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

// nullable forgets the type, since the value can be null.
func (s shape) nullable() shape {
	s.kind = unknown
	return s
}

// stepShape returns the shape of steps.NAME.
func (e *Env) stepShape(s Step) shape {
	return shape{kind: object, fields: map[string]shape{"status": {kind: chars}, "output": outputShape(s), "error": e.failure}}
}

// outputShape returns the shape of the output of a step.
func outputShape(s Step) shape {
	output := schemaShape(s.Output)
	if one := output; s.List {
		output = shape{kind: list, items: &one}
	}
	return output.nullable()
}

// failureShape is the shape of steps.NAME.error.
func failureShape() shape {
	return shape{fields: map[string]shape{
		"code": {kind: chars}, "category": {kind: chars}, "severity": {kind: chars}, "message": {kind: chars},
		"retryable": {kind: boolean}, "task": {kind: whole}, "attempt": {kind: whole},
	}}
}

// workflowShape is the shape of workflow.
func workflowShape() shape {
	return shape{kind: object, fields: map[string]shape{
		"id": {kind: chars}, "name": {kind: chars}, "labels": {kind: object, schema: map[string]any{}}, "started": {kind: moment},
	}}
}
