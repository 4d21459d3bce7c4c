package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const goldenFile = "testdata/sample.golden"

func golden(t *testing.T, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(goldenFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(guesttest.Read(t, goldenFile)), string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestAnalyze(t *testing.T) {
	t.Parallel()
	input := guesttest.Read(t, "sample.log")
	got := jobhost.Run(analyze, jobhost.Attempt{Input: input})
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	golden(t, got.Output)
	if size := int64(len(input)); got.Done != size || got.Total != size {
		t.Errorf("progress %d of %d, not %d", got.Done, got.Total, size)
	}
	var r report
	if err := json.Unmarshal(got.Output, &r); err != nil {
		t.Fatal(err)
	}
	want := map[string][]float64{
		`lines{kind="request"}`:   {float64(r.Requests)},
		`lines{kind="malformed"}`: {float64(r.Malformed)},
		`log_bytes`:               {float64(len(input))},
	}
	for class, n := range r.Status {
		want[fmt.Sprintf("requests{class=%q}", class)] = []float64{float64(n)}
	}
	if diff := cmp.Diff(want, got.Observed); diff != "" {
		t.Error(diff)
	}
}

func TestAnalyzeOdd(t *testing.T) {
	t.Parallel()
	const line = `192.0.2.1 - - [01/Mar/2025:00:00:00 +0000] "GET / HTTP/1.1" 200 1`
	for _, c := range []struct {
		name, input, code  string
		requests, progress int
	}{
		{name: "empty"},
		{name: "blank lines", input: "\n\r\n\n"},
		{name: "no end", input: line, requests: 1},
		{name: "CRLF", input: line + "\r\n" + line + "\r\n", requests: 2},
		{name: "no log", input: "Dear diary,\n", code: "no_access_log"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := jobhost.Run(analyze, jobhost.Attempt{Input: []byte(c.input)})
			if f, failed := errors.AsType[*jobhost.Failure](got.Err); failed {
				if f.Code != c.code || !f.Permanent || f.Category != jobhost.Validation {
					t.Errorf("%+v", f)
				}
				return
			}
			var r report
			if err := json.Unmarshal(got.Output, &r); err != nil || r.Requests != c.requests || r.Malformed != 0 || c.code != "" {
				t.Errorf("%s, %v", got.Output, err)
			}
		})
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	at := time.Date(2025, 3, 4, 6, 25, 14, 0, time.UTC).Unix()
	for _, c := range []struct {
		name, line, client, path string
		time                     int64 // 0 = malformed
		status                   int
		bytes                    int64
	}{
		{"common", `192.0.2.7 - - [04/Mar/2025:06:25:14 +0000] "GET /a HTTP/1.1" 200 512`, "192.0.2.7", "/a", at, 200, 512},
		{"combined, user, zone, query", `2001:db8::1 - kim lee [04/Mar/2025:07:55:14 +0130] "GET /a?b=1 HTTP/2" 404 0 "-" "x \"y\" [z]"`, "2001:db8::1", "/a", at, 404, 0},
		{"no size", `192.0.2.7 - - [03/Mar/2025:22:25:14 -0800] "HEAD / HTTP/1.1" 304 -`, "192.0.2.7", "/", at, 304, 0},
		{"quote in the path", `192.0.2.7 - - [04/Mar/2025:06:25:14 +0000] "GET /\"q\" HTTP/1.1" 400 9`, "192.0.2.7", `/\"q\"`, at, 400, 9},
		{name: "empty request", line: `192.0.2.7 - - [04/Mar/2025:06:25:14 +0000] "-" 408 0`},
		{name: "TLS on a plain port", line: `192.0.2.7 - - [04/Mar/2025:06:25:14 +0000] "\x16\x03\x01" 400 157 "-" "-"`},
		{name: "cut in the request", line: `192.0.2.7 - - [04/Mar/2025:06:25:14 +0000] "GET /a`},
		{name: "cut in the time", line: `192.0.2.7 - - [04/Mar/2025:06`},
		{name: "30 February", line: `192.0.2.7 - - [30/Feb/2025:06:25:14 +0000] "GET /a HTTP/1.1" 200 512`},
		{name: "month across two", line: `192.0.2.7 - - [04/anF/2025:06:25:14 +0000] "GET /a HTTP/1.1" 200 512`},
		{name: "status 999", line: `192.0.2.7 - - [04/Mar/2025:06:25:14 +0000] "GET /a HTTP/1.1" 999 512`},
		{name: "size out of range", line: `192.0.2.7 - - [04/Mar/2025:06:25:14 +0000] "GET /a HTTP/1.1" 200 99999999999999999999`},
		{name: "negative size", line: `192.0.2.7 - - [04/Mar/2025:06:25:14 +0000] "GET /a HTTP/1.1" 200 -5`},
		{name: "other text", line: `Mar  4 06:25:14 web sshd[812]: Accepted publickey`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e, ok := parse([]byte(c.line))
			if ok != (c.time != 0) {
				t.Fatalf("ok is %v: %+v", ok, e)
			}
			if ok && (string(e.client) != c.client || string(e.path) != c.path || e.time != c.time || e.status != c.status || e.bytes != c.bytes) {
				t.Errorf("%s %s %d %d %d", e.client, e.path, e.time, e.status, e.bytes)
			}
		})
	}
}

// TestGuest: the worker does the same in wasm.
func TestGuest(t *testing.T) {
	t.Parallel()
	g := guesttest.Start(t, guesttest.Build(t, "."))
	got := g.Run(guesttest.Read(t, "sample.log"))
	golden(t, got.Output)
	if len(got.Metrics) < 3 || len(got.Metrics) != len(got.Observed) || len(got.Progress) == 0 {
		t.Errorf("metrics %q, observed %q, progress %q", got.Metrics, got.Observed, got.Progress)
	}
	if got = g.Run([]byte("no log")); got.Kind != 2 || !strings.Contains(got.Failure, "no_access_log") {
		t.Errorf("kind %d, %s", got.Kind, got.Failure)
	}
}

// FuzzParseTime: parseTime accepts nothing that time.Parse rejects, and both
// return the same.
func FuzzParseTime(f *testing.F) {
	for _, seed := range []string{timeLayout, "29/Feb/2024:23:59:59 +2400", "31/Dec/0000:00:00:00 -0059"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) != len(timeLayout) {
			return
		}
		got, ok := parseTime([]byte(text))
		if !ok {
			return
		}
		if want, err := time.Parse(timeLayout, text); err != nil || got != want.Unix() {
			t.Errorf("%q is %d, not %d, %v", text, got, want.Unix(), err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`192.0.2.7 - - [04/Mar/2025:06:25:14 +0000] "GET /a\" HTTP/1.1" 200 512 "-" "x"`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, ok := parse(line)
		if ok && (len(e.client) == 0 || len(e.path) == 0 && !strings.Contains(string(line), " ?") || e.status < 100 || e.status > 599 || e.bytes < 0) {
			t.Errorf("%q became %+v", line, e)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	line := []byte(`192.0.2.7 - kim [04/Mar/2025:06:25:14 +0100] "GET /a?b=1 HTTP/1.1" 200 512 "-" "curl/8.5"`)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, ok := parse(line); !ok {
			b.Fatal("malformed")
		}
	}
}
