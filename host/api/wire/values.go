package wire

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobhost/jobhost"
)

// The types of members. The JSON library takes null for each of its own, and numbers
// that it rounds; these refuse all but what they are.
type (
	str      string
	whole    int
	flag     bool
	duration time.Duration
	instant  struct{ time.Time }
	priority jobhost.Priority
	labels   map[string]string
	// object has members of its own, those of the struct T.
	object[T any] struct {
		value T
		given bool
	}
	// givenWhole knows whether it was given.
	givenWhole struct {
		whole
		given bool
	}
)

func (s *str) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindString {
		return unexpected(dec, "a string")
	}
	token, err := dec.ReadToken()
	if err == nil {
		*s = str(token.String())
	}
	return err
}

func (n *whole) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindNumber {
		return unexpected(dec, "a whole number")
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	v, err := strconv.ParseInt(string(raw), 10, 32)
	if err != nil {
		return jobhost.Invalid(here(dec), "", "%s is not a whole number in range", here(dec))
	}
	*n = whole(v)
	return nil
}

func (n *givenWhole) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	n.given = true
	return n.whole.UnmarshalJSONFrom(dec)
}

func (f *flag) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if kind := dec.PeekKind(); kind != jsontext.KindTrue && kind != jsontext.KindFalse {
		return unexpected(dec, "true or false")
	}
	token, err := dec.ReadToken()
	if err == nil {
		*f = flag(token.Bool())
	}
	return err
}

func (d *duration) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var text str
	if err := text.UnmarshalJSONFrom(dec); err != nil {
		return err
	}
	v, err := jobhost.ParseDuration(string(text))
	if err != nil {
		return jobhost.Invalid(here(dec), jobhost.HintOf(err), "%s: %v", here(dec), err)
	}
	*d = duration(v)
	return nil
}

func (i *instant) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var text str
	err := text.UnmarshalJSONFrom(dec)
	if err == nil {
		i.Time, err = ParseTime(here(dec), string(text))
	}
	return err
}

// ParseTime reads a time as RFC 3339.
func ParseTime(name, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, jobhost.Invalid(name, `write it as in "2030-01-31T08:00:00Z"`, "%s is not a time of RFC 3339", name)
	}
	return t, nil
}

func (p *priority) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var text str
	if err := text.UnmarshalJSONFrom(dec); err != nil {
		return err
	}
	v, err := jobhost.ParsePriority(string(text))
	*p = priority(v)
	return err
}

func (l *labels) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	name := here(dec)
	if dec.PeekKind() != jsontext.KindBeginObject {
		return unexpected(dec, "an object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	*l = labels{}
	for dec.PeekKind() != jsontext.KindEndObject {
		key, err := dec.ReadToken()
		if err != nil {
			return err
		}
		label := key.String()
		if len(*l) >= jobhost.MaxLabels {
			return jobhost.Invalid(name, "", "there are more than %d labels", jobhost.MaxLabels)
		}
		if kind := dec.PeekKind(); kind != jsontext.KindString && kind != jsontext.KindInvalid {
			return wrongKind(name, "a string", kind)
		}
		value, err := dec.ReadToken()
		if err != nil {
			return err
		}
		(*l)[label] = value.String()
	}
	_, err := dec.ReadToken()
	return err
}

func (o *object[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindBeginObject {
		return unexpected(dec, "an object")
	}
	o.given = true
	return json.UnmarshalDecode(dec, &o.value)
}
