package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// Decoder reads bodies of requests, strictly: names that are unknown, doubled
// or written in another case, a second document, a byte order mark, invalid
// UTF-8 and lone surrogates, and contents nested beyond [MaxDepth] are errors.
// Each body is a struct, whose tags say what its members are. A Decoder is for
// one goroutine at a time and reuses its memory.
type Decoder struct {
	buf  bytes.Buffer
	json jsontext.Decoder
	// submit is empty but while one is decoded, since there are many of them.
	submit submitBody
	// maxPayload is in bytes.
	maxPayload int
}

// NewDecoder returns a decoder of jobs with up to maxPayload bytes of payload.
func NewDecoder(maxPayload int) *Decoder { return &Decoder{maxPayload: maxPayload} }

const oneObject = "send one JSON object"

var strict = json.RejectUnknownMembers(true)

// read reads a text that is one object into a struct. hint is what to do about
// more than one. The struct keeps nothing of the text.
func (d *Decoder) read(text []byte, hint string, into any) error {
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		return jobhost.Invalid("", "send UTF-8 without it", "the body begins with a byte order mark")
	}
	d.buf = *bytes.NewBuffer(text)
	d.json.Reset(&d.buf, strict)
	defer func() { d.buf = bytes.Buffer{} }()
	if kind := d.json.PeekKind(); kind != jsontext.KindBeginObject && kind != jsontext.KindInvalid {
		return jobhost.Invalid("", "", "the body is %s, not an object", kindNames[kind])
	}
	if err := json.UnmarshalDecode(&d.json, into); err != nil {
		return explain(err, reflect.TypeOf(into).Elem())
	}
	end := d.json.InputOffset()
	if _, err := d.json.ReadToken(); err != io.EOF {
		return jobhost.Invalid("", hint, "there is more after the end of the object at byte %d", end)
	}
	return nil
}

// Member describes a member of a body, for documentation.
type Member struct{ Name, Type, Doc string }

// members lists the members of a struct from the tags of its fields: json is
// the name, type that of JSON Schema ("" = any), doc what it is.
func members(t reflect.Type) []Member {
	list := make([]Member, 0, t.NumField())
	for f := range t.Fields() {
		list = append(list, Member{Name: f.Tag.Get("json"), Type: f.Tag.Get("type"), Doc: f.Tag.Get("doc")})
	}
	return list
}

// explain turns an error of the JSON library into one for people.
func explain(err error, body reflect.Type) error {
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return jobhost.Invalid(fieldOf(e.JSONPointer), "", "invalid JSON at byte %d: %s",
			e.ByteOffset, text.Clip(strings.TrimPrefix(e.Err.Error(), "jsontext: "), 80))
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok && errors.Is(err, json.ErrUnknownName) {
		what := "member"
		if e.GoType != body {
			what += " of " + fieldOf(e.JSONPointer.Parent())
		}
		return Unknown(what, e.JSONPointer.LastToken(), names(members(e.GoType)))
	}
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return jobhost.Invalid("", "", "the body is empty")
	}
	return jobhost.Invalid("", "", "invalid JSON: the body ends too early")
}

// fieldOf writes /restart/max as restart.max.
func fieldOf(p jsontext.Pointer) string {
	return text.Clip(strings.Join(slices.Collect(p.Tokens()), "."), 80)
}

func names(members []Member) []string {
	list := make([]string, len(members))
	for i, m := range members {
		list[i] = m.Name
	}
	return list
}

// unexpected says that the next value of a decoder is not what it should be.
func unexpected(dec *jsontext.Decoder, want string) error {
	kind := dec.PeekKind()
	if kind == jsontext.KindInvalid {
		_, err := dec.ReadToken()
		return err
	}
	return wrongKind(here(dec), want, kind)
}

// here is the name of the member whose value is next.
func here(dec *jsontext.Decoder) string { return fieldOf(dec.StackPointer()) }

func wrongKind(field, want string, kind jsontext.Kind) error {
	return jobhost.Invalid(field, "", "%s is %s, not %s", field, kindNames[kind], want)
}

var kindNames = map[jsontext.Kind]string{
	jsontext.KindNull: "null", jsontext.KindFalse: "false", jsontext.KindTrue: "true",
	jsontext.KindString: "a string", jsontext.KindNumber: "a number",
	jsontext.KindBeginObject: "an object", jsontext.KindBeginArray: "an array",
}

// tooLarge is the error for what is larger than the host takes.
func tooLarge(field, what string, size, most int, hint string) error {
	return &jobhost.Error{
		Code: jobhost.CodeTooLarge, Field: field, Hint: hint,
		Message: fmt.Sprintf("the %s of %d bytes is larger than %d", what, size, most),
	}
}
