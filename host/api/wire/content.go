package wire

import (
	"bytes"
	"encoding/base64"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/jsondepth"
)

// MaxDepth is how deep values may be nested in a body.
const MaxDepth = 64

// content is bytes that came in a member. The types made of it say in what form.
type content struct {
	data   []byte
	isJSON bool
	// end is where in the body it ends; 0 = it was not given.
	end int64
}

type (
	// textOrJSON is the text of a string, or the JSON text of any other value.
	textOrJSON struct{ content }
	// anyJSON is the JSON text of any value.
	anyJSON struct{ content }
	// plainText is the text of a string.
	plainText struct{ content }
	// base64Text is the bytes of a string in base64.
	base64Text struct{ content }
	// rawObject is the JSON text of an object.
	rawObject []byte
)

func (c *textOrJSON) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == jsontext.KindString {
		return c.readText(dec)
	}
	return c.readJSON(dec)
}

func (c *anyJSON) UnmarshalJSONFrom(dec *jsontext.Decoder) error   { return c.readJSON(dec) }
func (c *plainText) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return c.readText(dec) }

func (c *base64Text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if raw.Kind() != jsontext.KindString {
		return wrongKind(here(dec), "a string", raw.Kind())
	}
	text := raw[1 : len(raw)-1] // as it stands there, since it has no escapes if it is base64
	data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(data, text)
	if err != nil {
		return &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: here(dec), Cause: err,
			Message: here(dec) + " is not base64",
			Hint:    "use the standard alphabet (+ and /) with padding",
		}
	}
	c.data, c.end = data[:n], dec.InputOffset()
	return nil
}

func (o *rawObject) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindBeginObject {
		return unexpected(dec, "an object")
	}
	raw, err := dec.ReadValue()
	*o = rawObject(bytes.Clone(raw))
	return err
}

func (c *content) readText(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindString {
		return unexpected(dec, "a string")
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	c.data, err = jsontext.AppendUnquote(make([]byte, 0, len(raw)), []byte(raw))
	c.end = dec.InputOffset()
	return err
}

func (c *content) readJSON(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if at := jsondepth.Exceeds(raw, MaxDepth-1); at >= 0 {
		return jobhost.Invalid(here(dec), "", "nested more than %d deep at byte %d", MaxDepth, dec.InputOffset()-int64(len(raw)-at))
	}
	c.data, c.isJSON, c.end = bytes.Clone(raw), true, dec.InputOffset()
	return nil
}

// form is a member that contents can come in.
type form struct {
	name string
	*content
}

// oneOf returns the form that was given, of those that exclude each other; the
// first one if none was. Of two, the error names the later.
func oneOf(forms ...form) (form, error) {
	chosen := forms[0]
	for _, f := range forms[1:] {
		if f.end == 0 {
			continue
		}
		if chosen.end == 0 {
			chosen = f
			continue
		}
		first, second := chosen, f
		if first.end > second.end {
			first, second = second, first
		}
		return second, jobhost.Invalid(second.name, "", "%s and %s are both set", first.name, second.name)
	}
	return chosen, nil
}
