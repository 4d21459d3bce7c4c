package expr

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// decode decodes JSON. isJSON is false if the text is something else; an error
// means that it is JSON, but not usable in expressions.
func decode(data []byte) (v any, isJSON bool, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	v, err = decodeValue(d, 0)
	if _, is := errors.AsType[unfit](err); is {
		return nil, true, err
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return nil, true, unfit("a name is there twice in one object")
	}
	if err != nil {
		return nil, false, nil //nolint:nilerr // what isn't JSON is text
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, false, nil //nolint:nilerr // as above
	}
	return v, true, nil
}

// unfit is JSON that expressions can't use.
type unfit string

func (u unfit) Error() string { return string(u) }

func decodeValue(d *jsontext.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, unfit(fmt.Sprintf("values are nested deeper than %d", maxDepth))
	}
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case jsontext.KindNull:
		return nil, nil
	case jsontext.KindTrue, jsontext.KindFalse:
		return t.Bool(), nil
	case jsontext.KindString:
		return t.String(), nil
	case jsontext.KindNumber:
		return number(t.String())
	case jsontext.KindBeginArray:
		elements := []any{}
		for d.PeekKind() != jsontext.KindEndArray {
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			elements = append(elements, v)
		}
		_, err := d.ReadToken()
		return elements, err
	default:
		return decodeObject(d, depth)
	}
}

func decodeObject(d *jsontext.Decoder, depth int) (any, error) {
	members := map[string]any{}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String() // before the next read, which reuses the memory
		if members[key], err = decodeValue(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return members, err
}

// exact is the bound up to which doubles represent all whole numbers.
const exact = 1 << 53

// number parses a number as an int if it is whole and fits, however it is
// written: its type follows from its value.
func number(digits string) (any, error) {
	if head, tail, ok := strings.Cut(digits, "."); ok && strings.Trim(tail, "0") == "" {
		digits = head
	}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return nil, unfit(fmt.Sprintf("the number %s is out of range", text.Quote(digits, text.Short)))
	}
	if f == math.Trunc(f) && math.Abs(f) <= exact {
		return int64(f), nil
	}
	return f, nil
}

func tooLong() error {
	return tooLarge("select less", "the value of the expression is longer than %d bytes", MaxResultBytes)
}

// encode appends a value as canonical JSON.
func encode(b []byte, v ref.Val) ([]byte, error) {
	b, err := appendValue(b, v, 0)
	if err == nil && len(b) > MaxResultBytes {
		return nil, tooLong()
	}
	return b, err
}

func appendValue(b []byte, v ref.Val, depth int) ([]byte, error) {
	if len(b) > MaxResultBytes {
		return nil, tooLong()
	}
	if depth > maxDepth {
		return nil, jobhost.Invalid("", "", "the value is nested deeper than %d", maxDepth)
	}
	switch v := v.(type) {
	case types.Null:
		return append(b, "null"...), nil
	case types.Bool:
		return strconv.AppendBool(b, bool(v)), nil
	case types.Int:
		return strconv.AppendInt(b, int64(v), 10), nil
	case types.Uint:
		return strconv.AppendUint(b, uint64(v), 10), nil
	case types.Double:
		return appendDouble(b, float64(v))
	case types.String:
		return appendText(b, string(v))
	case types.Bytes:
		return appendText(b, base64.StdEncoding.EncodeToString(v))
	case types.Timestamp:
		return appendText(b, v.UTC().Format(time.RFC3339Nano))
	case types.Duration:
		return appendText(b, jobhost.Duration(v.Duration).String())
	case *types.Optional:
		if !v.HasValue() {
			return append(b, "null"...), nil
		}
		return appendValue(b, v.GetValue(), depth)
	case traits.Lister:
		return appendList(b, v, depth)
	case traits.Mapper:
		return appendMap(b, v, depth)
	}
	return nil, jobhost.Invalid("", "", "a value of type %s is not JSON", text.Message(v.Type().TypeName()))
}

func appendList(b []byte, l traits.Lister, depth int) ([]byte, error) {
	b = append(b, '[')
	var err error
	for i, first := l.Iterator(), true; i.HasNext() == types.True; first = false {
		if !first {
			b = append(b, ',')
		}
		if b, err = appendValue(b, i.Next(), depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendMap(b []byte, m traits.Mapper, depth int) ([]byte, error) {
	values := map[string]ref.Val{}
	var names []string
	for i := (orderedMap{m}).Iterator(); i.HasNext() == types.True; {
		key := i.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, jobhost.Invalid("", "make it text with string()", "the key %v of a map is not text", key.Value())
		}
		names = append(names, string(name))
		values[string(name)] = m.Get(key)
	}
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendText(b, name); err != nil {
			return nil, err
		}
		if b, err = appendValue(append(b, ':'), values[name], depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendDouble(b []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, jobhost.Invalid("", "", "%v is not a number of JSON", f)
	}
	if f == math.Trunc(f) && math.Abs(f) <= exact {
		return strconv.AppendInt(b, int64(f), 10), nil
	}
	return append(b, jsontext.Float(f).String()...), nil
}

func appendText(b []byte, s string) ([]byte, error) {
	b, err := jsontext.AppendQuote(b, s)
	if err != nil {
		return nil, jobhost.Invalid("", "", "text is not valid UTF-8")
	}
	return b, nil
}
