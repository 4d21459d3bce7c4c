// Command resilient-fetch is a worker that fetches one page and describes its content, and
// whose entry report combines several descriptions. It doesn't decide whether and when a
// fetch is retried: a server that is down is an error, which the workflow handles.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func init() {
	// Done before the sandbox's memory is saved as the initial state of all jobs.
	_ = json.Unmarshal([]byte(`{}`), &source{})
	_, _ = json.Marshal(page{})
	_ = json.Unmarshal([]byte(`{"a":{}}`), &map[string]page{})
	jobhost.Handle(fetch)
}

func main() {}

//go:wasmexport report
func reportEntry(n uint32) uint64 { return jobhost.Entry(n, report) }

type source struct {
	URL string `json:"url"`
}

// page is what fetch returns.
type page struct {
	URL   string `json:"url"`
	Bytes int    `json:"bytes"`
	First string `json:"first"` // line
}

// fetch gets the page of a URL. A status of 500 or more may be temporary; any other
// except 200 is permanent.
func fetch(job *jobhost.Job) ([]byte, error) {
	var s source
	if err := json.Unmarshal(job.Input(), &s); err != nil {
		return nil, jobhost.Permanent(err)
	}
	response, err := job.Fetch(jobhost.Request{URL: s.URL})
	if err != nil {
		return nil, err
	}
	if response.Status != 200 {
		failure := &jobhost.Failure{
			Err: fmt.Errorf("%s answered %d", s.URL, response.Status), Code: fmt.Sprintf("http_%d", response.Status), Category: jobhost.Network,
		}
		if response.Status >= 500 {
			return nil, failure
		}
		return nil, jobhost.Permanent(failure)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(response.Body)), "\n")
	return json.Marshal(page{s.URL, len(response.Body), first})
}

// report describes the pages that the previous steps have fetched, by their names.
func report(job *jobhost.Job) ([]byte, error) {
	var pages map[string]page
	if err := json.Unmarshal(job.Input(), &pages); err != nil {
		return nil, jobhost.Permanent(err)
	}
	if len(pages) == 0 {
		return nil, jobhost.Permanent(errors.New("there are no pages"))
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		p := pages[name]
		fmt.Fprintf(&b, "%s: %d bytes from %s, %s\n", name, p.Bytes, p.URL, p.First)
	}
	return []byte(b.String()), nil
}
