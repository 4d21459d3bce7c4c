package api_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api"
)

func TestRepeatable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method, path, body string
		want               bool
	}{
		{"POST", "/v1/jobs", `{"worker":"w","id":"a"}`, true},
		{"POST", "/v1/jobs", `{"worker":"w"}`, false},
		{"POST", "/v1/jobs", `{"worker":"w","id":""}`, false},
		{"POST", "/v1/jobs", `{"worker":"w","payload":{"id":"a"}}`, false},
		{"POST", "/v1/jobs", `{"id":"a"`, false},
		{"POST", "/v1/workflows", `{"workflow":"w","id":"a"}`, true},
		{"POST", "/v1/workflows", `{"workflow":"w"}`, false},
		{"POST", "/v1/workflows/a/cancel", `{"id":"a"}`, false},
		{"POST", "/v1/jobs/a/retry", `{"id":"a"}`, false},
		{"PUT", "/v1/jobs", `{"id":"a"}`, false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tt.method, "http://localhost"+tt.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if got := api.Repeatable(r, []byte(tt.body)); got != tt.want {
			t.Errorf("%s %s %s: %v", tt.method, tt.path, tt.body, got)
		}
	}
}

// TestOwn: what strangers may ask is answered by the host that they ask, and never makes it ask the one that leads.
func TestOwn(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/healthz": true, "/readyz": true, "/metrics": true, "/openapi.json": true, "/v1/hosts": true, "/v1/hosts/a/drain": true,
		"/v1/hostsx": false, "/v1/jobs": false, "/": false,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if got := api.Own(r); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// TestPasses: a host passes on what comes with the token, and what needs none. Everything else it refuses itself.
func TestPasses(t *testing.T) {
	t.Parallel()
	const right, wrong = "Bearer " + token, "Bearer nonsense"
	for _, tt := range []struct {
		name, method, path string
		tokens             []string
		from               string // "" = another machine
		open               bool   // reads need no token
		passes             bool
		status             int // of the refusal
	}{
		{name: "token", method: "POST", path: "/v1/jobs", tokens: []string{right}, passes: true},
		{name: "token, unknown path", method: "GET", path: "/v2/things", tokens: []string{right}, passes: true},
		{name: "none", method: "POST", path: "/v1/jobs", status: 401},
		{name: "none, read", method: "GET", path: "/v1/jobs", status: 401},
		{name: "none, stream", method: "GET", path: "/v1/events", status: 401},
		{name: "none, unknown path", method: "GET", path: "/v2/things", status: 404},
		{name: "none, odd path", method: "GET", path: "/v1//jobs", status: 404},
		{name: "none, unknown method", method: "BREW", path: "/v1/jobs", status: 405},
		{name: "wrong", method: "GET", path: "/v1/jobs", tokens: []string{wrong}, status: 401},
		{name: "two", method: "GET", path: "/v1/jobs", tokens: []string{wrong, right}, status: 401},
		{name: "open read", method: "GET", path: "/v1/jobs", from: "127.0.0.1:1", open: true, passes: true},
		{name: "open read, wrong token", method: "GET", path: "/v1/jobs", tokens: []string{wrong}, from: "127.0.0.1:1", open: true, status: 401},
		{name: "open read from elsewhere", method: "GET", path: "/v1/jobs", open: true, status: 401},
		{name: "open read, write", method: "POST", path: "/v1/jobs", from: "127.0.0.1:1", open: true, status: 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, err := api.New(api.Config{
				Server: func() (jobhost.Server, error) { return nil, errors.New("it was not refused") }, Token: token, OpenReads: tt.open,
			})
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequestWithContext(t.Context(), tt.method, "http://localhost"+tt.path, http.NoBody)
			r.Header["Authorization"] = tt.tokens
			if tt.from != "" {
				r.RemoteAddr = tt.from
			}
			if got := a.Passes(r); got != tt.passes {
				t.Fatalf("passes: %v", got)
			}
			w := httptest.NewRecorder()
			if a.ServeHTTP(w, r); !tt.passes && w.Code != tt.status {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, tt.status)
			}
		})
	}
}
