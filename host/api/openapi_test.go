package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

// newTestAPI returns an API with all routes and a server that nobody asks.
func newTestAPI(t testing.TB) *API {
	t.Helper()
	a, err := New(Config{Server: Serving(struct{ jobhost.Server }{}), Token: "0123456789abcdefghijklmnopqrstuv", Metrics: http.NotFoundHandler()})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// endpoints returns the methods and paths of the table of routes.
func endpoints(t testing.TB) []string {
	t.Helper()
	var list []string
	for _, r := range newTestAPI(t).routes() {
		list = append(list, r.method+" "+r.path)
	}
	slices.Sort(list)
	return list
}

func openAPI(t testing.TB) map[string]any {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/openapi.json", nil)
	r.RemoteAddr = "127.0.0.1:1"
	newTestAPI(t).ServeHTTP(w, r)
	var document map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil || w.Code != 200 {
		t.Fatalf("got %d %v: %s", w.Code, err, w.Body)
	}
	return document
}

func TestOpenAPIHasAllRoutes(t *testing.T) {
	t.Parallel()
	var got []string
	operations := map[string]bool{}
	for path, methods := range openAPI(t)["paths"].(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			got = append(got, strings.ToUpper(method)+" "+path)
			operations[operation.(map[string]any)["operationId"].(string)] = true
		}
	}
	slices.Sort(got)
	if want := endpoints(t); !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if len(operations) != len(got) {
		t.Errorf("%d operations have %d names", len(got), len(operations))
	}
}

func TestOpenAPIReferencesResolve(t *testing.T) {
	t.Parallel()
	document := openAPI(t)
	if document["openapi"] != "3.1.0" {
		t.Errorf("got version %v", document["openapi"])
	}
	refs := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				refs++
				var at any = document
				for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
					m, _ := at.(map[string]any)
					at = m[part]
				}
				if at == nil {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(document)
	if refs < 20 {
		t.Errorf("there are only %d references", refs)
	}
}

// TestSchemas compares the schema of a job with what encoding/json writes.
func TestSchemas(t *testing.T) {
	t.Parallel()
	schemas := openAPI(t)["components"].(map[string]any)["schemas"].(map[string]any)
	for name, v := range map[string]any{"Job": jobhost.Job{}, "Task": jobhost.Task{}, "Failure": jobhost.Failure{}, "WorkerStatus": jobhost.WorkerStatus{}} {
		text, err := json.Marshal(v)
		if err != nil && name != "Job" && name != "Task" { // no state, no text
			t.Fatal(err)
		}
		var written map[string]any
		_ = json.Unmarshal(text, &written)
		properties := schemas[name].(map[string]any)["properties"].(map[string]any)
		for member := range written {
			if properties[member] == nil {
				t.Errorf("the schema of %s has no %s", name, member)
			}
		}
		if len(properties) < len(written) || len(written) == 0 {
			t.Errorf("%s: schema has %v, JSON has %v", name, slices.Sorted(maps.Keys(properties)), slices.Sorted(maps.Keys(written)))
		}
	}
}

// TestDocs checks that docs/api.md tells of every endpoint, and of no other.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range regexp.MustCompile("(?m)^#+ `(GET|POST|PUT|DELETE) (/[^`]*)`$").FindAllStringSubmatch(string(text), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	slices.Sort(got)
	if want := endpoints(t); !slices.Equal(got, want) {
		t.Errorf("docs/api.md has %v\nwant %v", got, want)
	}
	for _, r := range newTestAPI(t).routes() {
		for _, p := range r.query {
			if !strings.Contains(string(text), "`"+p.name+"`") {
				t.Errorf("docs/api.md doesn't tell of parameter %s of %s", p.name, r.path)
			}
		}
	}
}

// FuzzEventID checks that an id is either refused or has exactly one way to be written.
func FuzzEventID(f *testing.F) {
	for _, id := range []string{"abc.1", "a.18446744073709551615", "a.01", ".1", "a.", "a.1.2", "a.+1", "a.1\n"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		epoch, seq, err := parseEventID(id)
		if err != nil {
			if jobhost.CodeOf(err) != jobhost.CodeInvalid {
				t.Errorf("got %v", err)
			}
			return
		}
		if again := fmt.Sprintf("%s.%d", epoch, seq); again != id {
			t.Errorf("%q reads as %q", id, again)
		}
	})
}
