package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobhost/jobhost/host/workflow/schema"
	"github.com/jobhost/jobhost/internal/text"
)

// jsonSchema is a JSON Schema, as a table or in a file, which is named by a table too.
func jsonSchema(dir string, p *json.RawMessage, file *string) setting {
	const hint = `write a JSON Schema as a table, such as { type = "object" }, or { file = "schema.json" }`
	return setting{
		set: func(v any) error {
			table, ok := v.(map[string]any)
			if !ok {
				return mismatch(v, hint)
			}
			name, given := table["file"]
			if !given {
				return schemaOf(table, p)
			}
			path, ok := name.(string)
			if !ok || len(table) > 1 {
				return wrong(hint, "file is not alone here, or no text")
			}
			abs, err := resolveWithin(dir, path)
			if err != nil {
				return err
			}
			text, err := readSchema(dir, abs)
			if err == nil {
				*p, *file = text, abs
			}
			return err
		},
		show: func() string {
			switch {
			case *file != "":
				return "{ file = " + quote(showPath(dir, *file)) + " }"
			case len(*p) == 0:
				return ""
			}
			return showSchema(*p)
		},
	}
}

// readSchema reads JSON from a file. Whether it is a schema shows later.
func readSchema(dir, path string) (json.RawMessage, error) {
	written, err := readFile(dir, path, schema.MaxBytes)
	if err != nil {
		return nil, err
	}
	var v jsontext.Value
	if err = jsonv2.Unmarshal(written, &v); err == nil {
		err = v.Compact()
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		line, column := newPositions(string(written)).lineColumn(int(syntax.ByteOffset))
		return nil, wrong("", "%s is not JSON: line %d, column %d: %s", text.Quote(showPath(dir, path), text.Short), line, column, text.Line(syntax.Err.Error(), 300))
	} else if err != nil {
		return nil, wrong("", "%s is not JSON: %s", text.Quote(showPath(dir, path), text.Short), text.Line(err.Error(), 300))
	}
	return json.RawMessage(v), nil
}

// schemaOf writes a table as JSON.
func schemaOf(table map[string]any, p *json.RawMessage) error {
	if err := checkSchema(table, 0); err != nil {
		return err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(table); err != nil {
		return wrong("", "%s", text.Line(err.Error(), 300))
	}
	*p = json.RawMessage(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	return nil
}

// checkSchema sees that a value can be written as JSON, and as one of a manifest again.
func checkSchema(v any, depth int) error {
	const hint = "put the schema into a file"
	if depth > maxNesting {
		return wrong(hint, "values are nested deeper than %d", maxNesting)
	}
	var below []any
	switch v := v.(type) {
	case time.Time:
		return wrong("put it in quotes", "a date or time is not possible in a schema")
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return wrong("", "%v is not a number of JSON", v)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if len(quote(name))+2 > maxKeyBytes {
				return wrong(hint, "the name %s is too long", text.Quote(name, text.Short))
			}
			below = append(below, v[name])
		}
	case []map[string]any:
		for _, one := range v {
			below = append(below, one)
		}
	case []any:
		below = v
	}
	for _, one := range below {
		if err := checkSchema(one, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// showSchema writes JSON that came from a table as one. It has no null.
func showSchema(text json.RawMessage) string {
	v, err := schema.Decode(text)
	if err != nil {
		return ""
	}
	var b strings.Builder
	showJSON(&b, v)
	return b.String()
}

func showJSON(b *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteString("{")
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(" " + showKey(name) + " = ")
			showJSON(b, v[name])
		}
		b.WriteString(" }")
	case []any:
		b.WriteString("[")
		for i, one := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			showJSON(b, one)
		}
		b.WriteString("]")
	case string:
		b.WriteString(quote(v))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case json.Number:
		b.WriteString(showNumber(v))
	}
}

// showNumber writes a number so that TOML has the same: what is no whole number of
// 64 bits has a point or an exponent there.
func showNumber(n json.Number) string {
	_, err := n.Int64()
	if err == nil && n != "-0" {
		return string(n)
	}
	if strings.ContainsAny(string(n), ".eE") {
		return string(n)
	}
	return string(n) + ".0"
}
