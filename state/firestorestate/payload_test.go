package firestorestate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"pgregory.net/rapid"
)

func TestPayload(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, out string // out = "": it comes back as it was
		text    bool   // no map can hold it
	}{
		{in: `{}`},
		{in: `{"a":1,"b":-9223372036854775808,"c":9223372036854775807}`},
		{in: `{"a":9223372036854775808}`, text: true},
		{in: `{"a":0.1,"b":1e300,"c":5e-324,"d":-0}`, out: `{"a":0.1,"b":1e+300,"c":5e-324,"d":-0}`},
		{in: `{"a":1.0,"b":1e3,"c":100e-2}`, out: `{"a":1,"b":1000,"c":1}`},
		{in: `{"a":3.14159265358979323846}`, text: true},
		{in: `{"a":1e400}`, text: true},
		{in: `{"a":1e-999999999}`, text: true},
		{in: `{ "b" : [1, null, true, "x\u0000\u2028<"] , "a" : {"x.y":{}, "": 1} }`, text: true}, // an empty name
		{in: `{ "b" : [1, null, true, "x<"] , "a" : {"x.y":{}, " ": 1} }`, out: `{"a":{" ":1,"x.y":{}},"b":[1,null,true,"x<"]}`},
		{in: `{"a":[[1]]}`, text: true},
		{in: `{"a":[{"b":[1]}]}`},
		{in: `{"__a__":1}`, text: true},
		{in: `{"__a":1}`},
		{in: `{"a":1,"a":2}`, text: true},
		{in: `{"a":"\ud800"}`, text: true},
		{in: strings.Repeat(`{"a":`, 18) + `{}` + strings.Repeat(`}`, 18)},
		{in: strings.Repeat(`{"a":`, 19) + `{}` + strings.Repeat(`}`, 19), text: true},
	} {
		v := encodePayload(json.RawMessage(c.in))
		_, isText := v.GetValueType().(*pb.Value_StringValue)
		want := c.in
		if c.out != "" {
			want = c.out
		}
		if got := string(decodePayload(v)); got != want || isText != c.text {
			t.Errorf("%.100s: got %.100s, as text: %v", c.in, got, isText)
		}
	}
	if got := decodePayload(encodePayload(nil)); got != nil {
		t.Errorf("no payload became %s", got)
	}
}

// TestNumbers holds what is kept of numbers against the library's reading of them.
func TestNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		in := fmt.Sprintf(rapid.SampledFrom([]string{"%v", "%e", "%.3f", "%.25g"}).Draw(t, "format"), f)
		if !json.Valid([]byte(in)) {
			t.Skip("no number")
		}
		v, ok := number(in)
		if !ok {
			return // kept as text
		}
		var back float64
		out := string(appendValue(nil, v))
		if err := json.Unmarshal([]byte(out), &back); err != nil || decimal(out) != decimal(in) {
			t.Fatalf("%s came back as %s, %v", in, out, err)
		}
	})
}
