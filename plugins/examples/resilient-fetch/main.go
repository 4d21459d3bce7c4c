// Command resilient-fetch is a worker that fetches one page and says what is in it, and
// with its entry report makes one text of several. Whether and when a fetch is tried again
// is not its affair: a server that is down is an error, which the workflow sees to.
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
	// Learnt before the sandbox's memory is kept for all jobs to start from.
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

// fetch gets the page of a URL. A status from 500 on may be better in a while; one below,
// other than 200, will not.
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

// report tells of the pages that the steps before have fetched, by the names of those.
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
