package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// maxDepth is how deep JSON may be nested, as in other bodies of the API.
const maxDepth = 64

// Decode parses a workflow from JSON, strictly: unknown, duplicate and differently
// capitalised names, a second document, invalid UTF-8 and nesting beyond 64 are
// errors, invalid or too_large, with the field. For valid JSON, all faults are
// reported at once. The contents of the workflow are not checked: see [Compile].
func Decode(text []byte) (jobhost.Workflow, error) {
	var w jobhost.Workflow
	if len(text) > jobhost.MaxWorkflowBytes {
		return w, &jobhost.Error{
			Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("a workflow of %d bytes is longer than %d", len(text), jobhost.MaxWorkflowBytes),
			Hint: "make parts of it workflows of their own",
		}
	}
	if err := checkDepth(text); err != nil {
		return w, err
	}
	if err := json.Unmarshal(text, &w, json.RejectUnknownMembers(true)); err != nil {
		var f faults
		f.decodeEach(text)
		return jobhost.Workflow{}, cmp.Or(f.join(), decodeError(err))
	}
	return w, nil
}

// decodeEach decodes each setting of the workflow and of its steps separately, since
// the JSON library stops at the first error. The text is valid JSON.
func (f *faults) decodeEach(text jsontext.Value) {
	for name, value := range members(text) {
		if name != "steps" || value.Kind() != jsontext.KindBeginArray {
			f.decode("", member(name, value), new(jobhost.Workflow))
			continue
		}
		d := jsontext.NewDecoder(bytes.NewReader(value))
		_, _ = d.ReadToken()
		for i := 0; d.PeekKind() != jsontext.KindEndArray; i++ {
			place := jsontext.Pointer("/steps/" + strconv.Itoa(i))
			step, _ := d.ReadValue()
			if step.Kind() != jsontext.KindBeginObject {
				f.decode(place, step, new(jobhost.Step))
				continue
			}
			for name, value := range members(step) {
				f.decode(place, member(name, value), new(jobhost.Step))
			}
		}
	}
}

func (f *faults) decode(place jsontext.Pointer, text jsontext.Value, into any) {
	err := json.Unmarshal(text, into, json.RejectUnknownMembers(true))
	if err == nil {
		return
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		semantic.JSONPointer = place + semantic.JSONPointer
	}
	if e, ok := errors.AsType[*jobhost.Error](decodeError(err)); ok {
		f.put(e)
	}
}

// members iterates over the members of an object.
func members(object jsontext.Value) iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		d := jsontext.NewDecoder(bytes.NewReader(object))
		_, _ = d.ReadToken()
		for d.PeekKind() == jsontext.KindString {
			name, _ := d.ReadToken()
			text := name.String()
			value, err := d.ReadValue()
			if err != nil || !yield(text, value) {
				return
			}
		}
	}
}

// member returns an object with one member.
func member(name string, value jsontext.Value) jsontext.Value {
	text, _ := jsontext.AppendQuote([]byte("{"), name)
	return append(append(append(text, ':'), value...), '}')
}

// checkDepth reports input that is not a single JSON object, or nested too deep.
func checkDepth(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if d.PeekKind() != jsontext.KindBeginObject && len(bytes.TrimSpace(text)) > 0 {
		if _, err := d.ReadValue(); err == nil {
			return jobhost.Invalid("", `write an object: {"name": …, "steps": […]}`, "this is not a workflow")
		}
	}
	for {
		if _, err := d.ReadToken(); err == io.EOF {
			return nil
		} else if err != nil {
			return decodeError(err)
		}
		if d.StackDepth() > maxDepth {
			return jobhost.Invalid(fieldOf(d.StackPointer()), "", "values are nested deeper than %d", maxDepth)
		}
	}
}

// decodeError describes a JSON error in terms of the definition.
func decodeError(err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		field := fieldOf(syntax.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return jobhost.Invalid(field, "", "%s is there twice", text.Quote(syntax.JSONPointer.LastToken(), text.Short))
		}
		return jobhost.Invalid(field, "", "this is not JSON: at byte %d: %s", syntax.ByteOffset, printable(syntax.Err, err))
	}
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return jobhost.Invalid("", "", "%s", printable(err))
	}
	field := fieldOf(semantic.JSONPointer)
	if errors.Is(err, json.ErrUnknownName) {
		name := semantic.JSONPointer.LastToken()
		return jobhost.Invalid(field, didYouMean(name, settings(semantic.GoType)), "there is no setting %s", text.Quote(name, text.Short))
	}
	if inner, ok := errors.AsType[*jobhost.Error](semantic.Err); ok {
		return &jobhost.Error{Code: jobhost.CodeInvalid, Field: field, Message: inner.Message, Hint: inner.Hint}
	}
	if semantic.GoType == reflect.TypeFor[jobhost.Duration]() && semantic.JSONKind != jsontext.KindString {
		return jobhost.Invalid(field, `write text with a unit, such as "30s"`, "%s is not a duration", kindName(semantic.JSONKind))
	}
	if semantic.Err != nil {
		return jobhost.Invalid(field, "", "%s", printable(semantic.Err))
	}
	return jobhost.Invalid(field, "", "%s is not possible here", kindName(semantic.JSONKind))
}

func kindName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "true or false"
	case jsontext.KindString:
		return "text"
	case jsontext.KindNumber:
		return "this number"
	case jsontext.KindBeginArray:
		return "a list"
	}
	return "an object"
}

// fieldOf converts /steps/3/needs/0 to steps[3].needs[0].
func fieldOf(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if _, err := strconv.Atoi(token); err == nil {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteString(".")
		}
		if strings.Trim(token, "abcdefghijklmnopqrstuvwxyz_") == "" && len(token) <= 64 {
			b.WriteString(token)
		} else {
			b.WriteString(text.Quote(token, text.Short))
		}
	}
	return b.String()
}

// settings returns the names of a type's JSON members.
func settings(t reflect.Type) []string {
	var names []string
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
