package js_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

// TestEdges runs the entries of testdata/edge.js, each in a sandbox of its own.
func TestEdges(t *testing.T) {
	t.Parallel()
	module := build(t, "testdata/edge.js")
	for entry, want := range map[string]string{
		"wakes":   "1",
		"imports": "<p>42",
		"grow":    "100000",
		"draws":   "true,true,true",
	} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			if got := sdktest.Call(t, module, entry, ""); got != want {
				t.Errorf("%q instead of %q", got, want)
			}
		})
	}
	for entry, want := range map[string]struct{ code, message string }{
		"large": {"output_too_large", ""},
		"deep":  {"exception", "RangeError: Maximum call stack size exceeded"},
		"hoard": {"out_of_memory", "out of memory"},
	} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			f := sdktest.Fail(t, module, entry, "")
			if f.Code != want.code || !strings.Contains(f.Message, want.message) || !f.Retryable {
				t.Errorf("%+v", f)
			}
		})
	}
}

// testResults is what comes of what handlers return and throw.
func testResults(t *testing.T, g *guesttest.Guest) {
	for entry, want := range map[string]string{
		"object":    `{"a":[1,null]}`,
		"nothing":   "",
		"text":      "größe \uFFFD",
		"parts":     "one two  ",
		"payload":   `{"n":1}`,
		"thenable":  "then",
		"timers":    "a,b",
		"dropped":   "closed",
		"badURL":    "TypeError",
		"unawaited": "done",
		"lines":     "",
	} {
		got, at := call(t, g, entry, guesttest.Attempt{Input: []byte(`{"n": 1}`)})
		check(t, got, want)
		logged := map[string]string{
			"lines":     "0 a {\"b\":1} [2] 3; 0 next; 4 one\nline",
			"unawaited": "4 nobody awaits a promise that was rejected: Error: nobody looks\nat unawaited",
		}[entry]
		if log := strings.Join(at.Logs, "; "); !strings.HasPrefix(log, logged) || logged == "" && log != "" {
			t.Errorf("%s logs %q", entry, log)
		}
	}
	for entry, want := range map[string]string{
		"unserializable": `{"message":"TypeError: BigInt are forbidden in JSON.stringify","code":"exception","category":"system","context":{"stack":"`,
		"payload":        `{"message":"the payload is no JSON: `,
		"thrown":         `{"message":"thrown: {\"a\":1}"}`,
		"rejects":        `{"message":"RangeError: async","code":"exception","category":"system","context":{"stack":"`,
		"context":        `{"message":"no quota","code":"quota","context":{"stack":"at context (calls.js:`,
		"hang":           `{"message":"the handler waits for something that never comes","code":"deadlock","category":"system"}`,
	} {
		got, at := call(t, g, entry, guesttest.Attempt{Input: []byte("no JSON")})
		if kind := map[string]int32{"payload": 2}[entry]; !strings.HasPrefix(got, want) || at.Kind != max(kind, 1) {
			t.Errorf("%s: %d %s", entry, at.Kind, got)
		}
	}
}
