package schema

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

func parse(t *testing.T, text string) *Schema {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMismatch(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, from, to, want string }{
		{"same", `{"type":"string"}`, `{"type":"string"}`, ""},
		{"other type", `{"type":"string"}`, `{"type":"array"}`, "it is string, and should be array"},
		{"whole numbers are numbers", `{"type":"integer"}`, `{"type":"number"}`, ""},
		{"numbers can be whole", `{"type":"number"}`, `{"type":"integer"}`, ""},
		{"one of several", `{"type":["string","null"]}`, `{"type":["null","array"]}`, ""},
		{"none of several", `{"type":["string","null"]}`, `{"type":["boolean","array"]}`, "it is string or null, and should be boolean or array"},
		{"anything", `true`, `{"type":"array"}`, ""},
		{"nothing", `{"type":"array"}`, `false`, "it may not be there"},
		{"required, not listed", `{"type":"object","properties":{"a":{}}}`, `{"required":["b"]}`, `it has no "b", which is required`},
		{"required, open", `{"type":"object","properties":{"a":{}},"additionalProperties":true}`, `{"required":["b"]}`, ""},
		{"required, nothing listed", `{"type":"object"}`, `{"required":["b"]}`, ""},
		{"required, perhaps there", `{"type":"object","properties":{"b":{}}}`, `{"required":["b"]}`, ""},
		{"required, by a pattern", `{"type":"object","additionalProperties":false,"patternProperties":{"^b":{}}}`, `{"required":["b"]}`, ""},
		{"deep", `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}`, `{"required":["a"],"properties":{"a":{"required":["b"],"properties":{"b":{"type":"boolean"}}}}}`, "a.b is string, and should be boolean"},
		{"optional on both sides", `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"type":"boolean"}}}`, ""},
		{"elements of what can be empty", `{"type":"array","items":{"type":"string"}}`, `{"type":"array","items":{"type":"boolean"}}`, ""},
		{"values", `{"enum":["a","b"]}`, `{"const":"c"}`, "it has none of the values that it should have"},
		{"values in common", `{"enum":["a","b"]}`, `{"enum":["b","c"]}`, ""},
		{"numbers as values", `{"enum":[1]}`, `{"enum":[1.0]}`, ""},
		{"reference", `{"$defs":{"x":{"type":"string"}},"$ref":"#/$defs/x"}`, `{"type":"array"}`, "it is string, and should be array"},
		{"circle", `{"type":"object","properties":{"n":{"$ref":"#"}},"required":["n"]}`, `{"type":"object","properties":{"n":{"$ref":"#"}},"required":["n"]}`, ""},
		{"may be something else", `{"type":["object","null"],"properties":{"a":{}}}`, `{"required":["b"]}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Mismatch(parse(t, tt.from), parse(t, tt.to)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	text, object := parse(t, `{"type":"string"}`), parse(t, `{"type":"object"}`)
	if why := Mismatch(Array(text), object); !strings.Contains(why, "array") {
		t.Errorf("a list as an object: %q", why)
	}
	if why := Mismatch(Element(Array(text)), object); !strings.Contains(why, "string") {
		t.Errorf("an element as an object: %q", why)
	}
	if why := Mismatch(Element(parse(t, `{"type":"array","items":{"type":"string"}}`)), object); !strings.Contains(why, "string") {
		t.Errorf("an element as an object: %q", why)
	}
	if Mismatch(Array(nil), object) != "" || Element(nil) != nil {
		t.Error("nothing known is no mismatch")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	s := parse(t, `{"type":"object","properties":{"a":{"type":"integer","maximum":9007199254740993}},"required":["a"]}`)
	for value, want := range map[string]string{
		`{"a":9007199254740993}`: "", `{"a":9007199254740994}`: "maximum", `{}`: "missing", `{"a":"x"}`: "/a", `x`: "not JSON", `{"a":1} 2`: "more after",
	} {
		err := s.Check([]byte(value))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", value, err, want)
		}
		if err != nil && jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("%s: got code %s", value, jobhost.CodeOf(err))
		}
	}
}

func TestLargeSchemasAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := Parse(make([]byte, MaxBytes+1)); jobhost.CodeOf(err) != jobhost.CodeTooLarge {
		t.Errorf("got %v", err)
	}
	if _, err := Parse([]byte(strings.Repeat(`{"not":`, 20_000) + "true" + strings.Repeat("}", 20_000))); err == nil {
		t.Error("a schema of 20,000 levels was taken")
	}
}
