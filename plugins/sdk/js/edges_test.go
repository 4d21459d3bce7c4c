package js_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

// TestEdges runs the entries of testdata/edge.js.
func TestEdges(t *testing.T) {
	t.Parallel()
	module := build(t, "testdata/edge.js")
	for entry, want := range map[string]string{
		"wakes":     "1",
		"imports":   "<p>42",
		"object":    `{"a":[1,null]}`,
		"nothing":   "",
		"text":      "größe \uFFFD",
		"parts":     "one two  ",
		"payload":   `{"n":1}`,
		"grow":      "100000",
		"thenable":  "then",
		"overlap":   "true",
		"timers":    "a,b",
		"fastest":   "fast",
		"dropped":   "closed",
		"badURL":    "TypeError",
		"unawaited": "done",
		"draws":     "true,true",
		"uuid":      "true",
	} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			if got := sdktest.Call(t, module, entry, `{"n": 1}`); got != want {
				t.Errorf("%q instead of %q", got, want)
			}
		})
	}
	for entry, want := range map[string]struct {
		code, message string
		retryable     bool
	}{
		"unserializable": {"exception", "TypeError: BigInt", true},
		"payload":        {"bad_input", "the payload is no JSON", false},
		"large":          {"output_too_large", "", true},
		"deep":           {"exception", "RangeError: Maximum call stack size exceeded", true},
		"hoard":          {"out_of_memory", "out of memory", true},
		"thrown":         {"failed", `thrown: {"a":1}`, true},
		"later":          {"exception", "RangeError: async", true},
		"context":        {"quota", "no quota", true},
		"hang":           {"deadlock", "the handler waits for something that never comes", true},
	} {
		t.Run("failing "+entry, func(t *testing.T) {
			t.Parallel()
			f := sdktest.Fail(t, module, entry, "no JSON")
			if f.Code != want.code || !strings.Contains(f.Message, want.message) || f.Retryable != want.retryable {
				t.Errorf("%+v", f)
			}
		})
	}
}
