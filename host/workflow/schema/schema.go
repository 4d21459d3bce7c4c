// Package schema parses the JSON Schemas of workflows and checks whether one is valid, whether a value
// fits, and whether values of one can fit another.
//
// Schemas use draft 2020-12, or the older draft that they name in $schema. Nothing is loaded: references
// are resolved only within the schema. Regular expressions are Go's, which take linear time.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// MaxBytes is the maximum size of a schema.
const MaxBytes = 256 << 10

// Schema is a valid JSON Schema. It is safe for concurrent use.
type Schema struct {
	doc      any
	compiled *jsonschema.Schema
}

// Parse parses a schema. Errors are invalid or too_large, and safe to print.
func Parse(source json.RawMessage) (*Schema, error) {
	if len(source) > MaxBytes {
		return nil, &jobhost.Error{Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("a schema of %d bytes is longer than %d", len(source), MaxBytes)}
	}
	doc, err := Decode(source)
	if err != nil {
		return nil, jobhost.Invalid("", "", "the schema is not JSON: %s", text.Message(err.Error()))
	}
	const name = "schema:workflow"
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	if err := c.AddResource(name, doc); err != nil {
		return nil, jobhost.Invalid("", "", "this is not a JSON Schema: %s", text.Message(plain(err)))
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return nil, jobhost.Invalid("", "", "this is not a JSON Schema: %s", text.Message(plain(err)))
	}
	return &Schema{doc: doc, compiled: compiled}, nil
}

// Decode decodes JSON, keeping numbers as they are written.
func Decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more after its end")
	}
	return v, nil
}

// nothing is a loader that loads nothing.
type nothing struct{}

// Load implements [jsonschema.URLLoader].
func (nothing) Load(string) (any, error) { return nil, errors.New("other documents are not loaded") }

// Check returns an invalid error that says where and why JSON doesn't fit.
func (s *Schema) Check(value []byte) error {
	v, err := Decode(value)
	if err != nil {
		return jobhost.Invalid("", "", "it is not JSON: %s", text.Message(err.Error()))
	}
	if err := s.compiled.Validate(v); err != nil {
		return jobhost.Invalid("", "", "%s", text.Message(plain(err)))
	}
	return nil
}

// plain returns the innermost causes of an error, without the names of files that don't exist.
func plain(err error) string {
	if v, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		err = v.Err
	}
	if v, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		lines := leaves(v, nil)
		return strings.Join(lines, ", ")
	}
	text := strings.NewReplacer("schema:workflow#", "#", "schema:workflow", "the schema").Replace(err.Error())
	return text
}

func leaves(v *jsonschema.ValidationError, lines []string) []string {
	const most = 4
	if len(lines) >= most {
		return lines
	}
	if len(v.Causes) == 0 {
		text := v.Error()
		if _, after, ok := strings.Cut(text, "\n"); ok {
			text = strings.TrimPrefix(strings.TrimSpace(after), "- ")
		}
		return append(lines, text)
	}
	for _, cause := range v.Causes {
		lines = leaves(cause, lines)
	}
	return lines
}
