package api_test

import (
	"net/http"
	"testing"

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
