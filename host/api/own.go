package api

import (
	"net/http"

	"github.com/go-json-experiment/json"
)

// Own reports whether a request is about the process that it comes to or about the hosts of its cluster, rather than
// about jobs, which only the host that leads knows. What every host can answer without a token is its own: strangers can
// have a host ask the leader for little.
func Own(r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz", "/readyz", "/metrics", "/openapi.json":
		return true
	}
	return ofHosts(r.URL.Path)
}

// Passes reports whether a request may be passed on to another host: it comes with the token, or needs none. Any other is
// for ServeHTTP, which refuses it. So strangers get nothing of what it takes to pass a request on, nor learn whether the other
// host answers.
func (a *API) Passes(r *http.Request) bool {
	if a.isTrusted(r) {
		return true
	}
	handler, _ := a.mux.Handler(r)
	m, ok := handler.(*methods)
	if !ok || len(r.Header["Authorization"]) > 0 {
		return false
	}
	route := m.route(r.Method)
	return route != nil && a.guard.free(r, route.access)
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
