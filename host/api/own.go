package api

import (
	"net/http"

	"github.com/go-json-experiment/json"
)

// Own reports whether a request is about the process that it comes to or about the hosts of its cluster, rather than
// about jobs, which only the host that leads knows.
func Own(r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz", "/readyz", "/metrics":
		return true
	}
	return ofHosts(r.URL.Path)
}

// Repeatable reports whether a request may be carried out twice, by its body: it submits a job or starts a workflow with
// an id, and the second time finds that of the first.
func Repeatable(r *http.Request, body []byte) bool {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/jobs" && r.URL.Path != "/v1/workflows" {
		return false
	}
	var named struct {
		ID string `json:"id"`
	}
	return json.Unmarshal(body, &named) == nil && named.ID != ""
}
