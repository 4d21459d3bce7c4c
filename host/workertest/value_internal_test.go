package workertest

import (
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, a, b string }{
		{"names in any order", `{"b": 1, "a": [1, {}]}`, "{\"a\":[1,{}],\n\"b\":1}\n"},
		{"numbers", `[1, 10, -2.5, 0, 1e3, 123456789012345678901234567890]`, `[1.0, 1e1, -25e-1, -0.0, 1000, 123456789012345678901234567890]`},
		{"escapes", `"\u00e4\u003c"`, `"ä<"`},
		{"ignored", `{"at": 1, "list": [{"at": 2, "x": 3}]}`, `{"list": [{"x": 3}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, err := canonical([]byte(tt.a), []string{"at"})
			b, err2 := canonical([]byte(tt.b), nil)
			if a != b || err != nil || err2 != nil {
				t.Errorf("%s, %v\n%s, %v", a, err, b, err2)
			}
		})
	}
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", " ", "no JSON"},
		{"two", "{} {}", "more follows"},
		{"not JSON", "{a}", "not JSON"},
		{"deep", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "nested deeper"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, err := canonical([]byte(tt.text), nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestDistinct: numbers that are not equal don't become so.
func TestDistinct(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, n := range []string{"0", "1", "-1", "1.5", "9007199254740993", "9007199254740992", "9223372036854775807", "9223372036854775808", "1e300", "1e301", "18446744073709551615"} {
		text, err := canonical([]byte(n), nil)
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := seen[text]; taken {
			t.Errorf("%s and %s are both %s", n, other, text)
		}
		seen[text] = n
	}
}
