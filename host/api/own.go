package api

import (
	"net/http"

	"github.com/go-json-experiment/json"
)

// Own reports whether a request is about the process that it comes to, rather than about the jobs, which are the same
// on all hosts of a cluster.
func Own(r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz", "/readyz", "/metrics":
		return true
	}
	return false
}

// Repeatable reports whether a request may be carried out twice, by its body: it is a submit of a job with an id, of
// which the second finds the job of the first.
func Repeatable(r *http.Request, body []byte) bool {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/jobs" {
		return false
	}
	var job struct {
		ID string `json:"id"`
	}
	return json.Unmarshal(body, &job) == nil && job.ID != ""
}
