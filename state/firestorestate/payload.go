package firestorestate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/go-json-experiment/json/jsontext"
)

// encodePayload makes a JSON object a map, in which others can search. The few that
// a map can't hold as they are become text: arrays in arrays, names that Firestore
// keeps for itself, numbers that are neither an int64 nor a double, more than 18
// levels, a name twice, text that is no Unicode. Nothing is a null.
func encodePayload(raw json.RawMessage) *pb.Value {
	if len(raw) == 0 {
		return null()
	}
	r := reader{jsontext.NewDecoder(bytes.NewReader(raw))}
	if v, ok := r.value(0, false); ok {
		return v
	}
	return text(string(raw))
}

// Firestore has 20 levels, of which the document and the payload are two.
const (
	maxLevels    = 18
	maxNameBytes = 1500
)

// reader makes JSON values of Firestore's. ok = false: it can't be done exactly.
type reader struct{ dec *jsontext.Decoder }

func (r reader) value(level int, inArray bool) (_ *pb.Value, ok bool) {
	if level > maxLevels {
		return nil, false
	}
	t, err := r.dec.ReadToken()
	if err != nil {
		return nil, false
	}
	switch t.Kind() {
	case 'n':
		return null(), true
	case 't', 'f':
		return &pb.Value{ValueType: &pb.Value_BooleanValue{BooleanValue: t.Bool()}}, true
	case '"':
		return text(t.String()), true
	case '0':
		return number(t.String())
	case '{':
		return r.object(level)
	case '[':
		if inArray {
			return nil, false
		}
		return r.array(level)
	}
	return nil, false
}

func (r reader) object(level int) (*pb.Value, bool) {
	fields := map[string]*pb.Value{}
	for r.dec.PeekKind() != '}' {
		t, err := r.dec.ReadToken()
		if err != nil {
			return nil, false
		}
		name := t.String() // the token is gone with the next one
		if name == "" || len(name) > maxNameBytes || strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
			return nil, false
		}
		v, ok := r.value(level+1, false)
		if !ok {
			return nil, false
		}
		fields[name] = v
	}
	_, err := r.dec.ReadToken()
	return &pb.Value{ValueType: &pb.Value_MapValue{MapValue: &pb.MapValue{Fields: fields}}}, err == nil
}

func (r reader) array(level int) (*pb.Value, bool) {
	values := []*pb.Value{}
	for r.dec.PeekKind() != ']' {
		v, ok := r.value(level+1, true)
		if !ok {
			return nil, false
		}
		values = append(values, v)
	}
	_, err := r.dec.ReadToken()
	return &pb.Value{ValueType: &pb.Value_ArrayValue{ArrayValue: &pb.ArrayValue{Values: values}}}, err == nil
}

// number returns a number as an int64, or as the double that has its very value.
func number(s string) (*pb.Value, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && s != "-0" {
		return integer(n), true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || decimal(s) != decimal(strconv.FormatFloat(f, 'e', -1, 64)) {
		return nil, false
	}
	return &pb.Value{ValueType: &pb.Value_DoubleValue{DoubleValue: f}}, true
}

// decimal writes a number so that equal ones are equal texts: sign, digits without
// zeros at either end, exponent.
func decimal(s string) string {
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	digits, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		digits = s[:i]
		exponent, _ = strconv.Atoi(s[i+1:]) // that of no double is out of range before
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return sign + "0"
	}
	return sign + trimmed + "e" + strconv.Itoa(exponent+len(digits)-len(trimmed))
}

// decodePayload is the inverse of encodePayload, but for what is of no meaning in
// JSON: white space, the order of names, how a number is written.
func decodePayload(v *pb.Value) json.RawMessage {
	switch v.GetValueType().(type) {
	case *pb.Value_MapValue:
		return appendValue(nil, v)
	case *pb.Value_StringValue:
		if raw := []byte(v.GetStringValue()); len(raw) > 0 && raw[0] == '{' && json.Valid(raw) {
			return raw
		}
	}
	return nil
}

// appendValue appends a value as JSON, those too that only others write.
func appendValue(b []byte, v *pb.Value) []byte {
	switch x := v.GetValueType().(type) {
	case *pb.Value_BooleanValue:
		return strconv.AppendBool(b, x.BooleanValue)
	case *pb.Value_IntegerValue:
		return strconv.AppendInt(b, x.IntegerValue, 10)
	case *pb.Value_DoubleValue:
		return appendDouble(b, x.DoubleValue)
	case *pb.Value_StringValue:
		return appendText(b, x.StringValue)
	case *pb.Value_TimestampValue:
		return appendText(b, x.TimestampValue.AsTime().Format(time.RFC3339Nano))
	case *pb.Value_BytesValue:
		return appendText(b, base64.StdEncoding.EncodeToString(x.BytesValue))
	case *pb.Value_ReferenceValue:
		return appendText(b, x.ReferenceValue)
	case *pb.Value_ArrayValue:
		b = append(b, '[')
		for i, e := range x.ArrayValue.GetValues() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, e)
		}
		return append(b, ']')
	case *pb.Value_MapValue:
		b = append(b, '{')
		for i, name := range slices.Sorted(maps.Keys(x.MapValue.GetFields())) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, name), ':')
			b = appendValue(b, x.MapValue.GetFields()[name])
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

func appendDouble(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, f, format, -1, 64)
}

// appendText appends a JSON string. What comes from Firestore is Unicode.
func appendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}
