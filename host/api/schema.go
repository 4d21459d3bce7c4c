package api

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// models makes JSON schemas from types, the way encoding/json writes them.
// Structs become components, named after their type.
type models struct{ schemas object }

func (m *models) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return object{} // any value
	case reflect.TypeFor[jobhost.State]():
		return enum(jobhost.States())
	case reflect.TypeFor[jobhost.Priority]():
		return enum([]jobhost.Priority{jobhost.Critical, jobhost.High, jobhost.Normal, jobhost.Low, jobhost.Background})
	}
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return m.of(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": m.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": m.of(t.Elem())}
	case reflect.Struct:
		return m.component(t)
	}
	return object{"type": "integer"}
}

// component returns a reference to a struct's schema, and sees that it is there.
func (m *models) component(t reflect.Type) object {
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if _, there := m.schemas[name]; !there {
		m.schemas[name] = nil // in case the type refers to itself
		properties, required := object{}, []string{}
		m.fields(t, properties, &required)
		m.schemas[name] = object{"type": "object", "properties": properties, "required": required}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (m *models) fields(t reflect.Type, properties object, required *[]string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			m.fields(f.Type, properties, required)
		case name == "-" || !f.IsExported():
		default:
			properties[name] = m.of(f.Type)
			if !strings.Contains(options, "omit") {
				*required = append(*required, name)
			}
		}
	}
}

func enum[T interface{ String() string }](values []T) object {
	var names []string
	for _, v := range values {
		names = append(names, v.String())
	}
	return object{"type": "string", "enum": names}
}
