// Command scrape-defer is a worker that follows the links of a site. It doesn't
// occupy a sandbox while a page is loading: the host sends the request after the
// job has succeeded, and delivers the response as another job, for the entry page.
package main

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func init() {
	// Done before the sandbox's memory is saved as the initial state of all jobs.
	_ = json.Unmarshal([]byte(`{}`), &task{})
	_, _ = json.Marshal(result{Links: []string{""}})
	jobhost.Handle(scrape)
}

func main() {}

// page is for the jobs that deliver responses.
//
//go:wasmexport page
func page(n uint32) uint64 { return jobhost.Entry(n, scraped) }

// task is the payload, unless that is a URL, and what accompanies each request.
type task struct {
	URL string `json:"url"`
	// Depth is up to how many links away from URL pages are fetched; 0 = only that page.
	Depth int `json:"depth"`
	// Crawl is the job that started the crawl.
	Crawl string `json:"crawl,omitempty"`
}

// result is what is found in a page.
type result struct {
	URL    string   `json:"url"`
	Status int      `json:"status"`
	Title  string   `json:"title"`
	Links  []string `json:"links"`
	// Followed counts the links that are fetched next.
	Followed int `json:"followed"`
}

// Bounds of a crawl. A job may have 32 generations of ancestors, and each page
// makes two of them: that of the request, and that of the response.
const (
	maxDepth = 10
	maxLinks = 200 // of a page
)

// scrape begins a crawl. Its payload is a URL or a [task].
func scrape(job *jobhost.Job) ([]byte, error) {
	t := task{URL: strings.TrimSpace(string(job.Input()))}
	if strings.HasPrefix(t.URL, "{") {
		t.URL = ""
		if err := json.Unmarshal(job.Input(), &t); err != nil {
			return nil, jobhost.Permanent(err)
		}
	}
	start, err := url.Parse(t.URL)
	if err != nil || start.Host == "" || t.Depth < 0 || t.Depth > maxDepth {
		return nil, jobhost.Permanent(&jobhost.Failure{
			Err:  errors.New("the payload is a URL, or JSON with url and a depth of up to 10"),
			Code: "bad_task", Category: jobhost.Validation,
		})
	}
	t.Crawl, t.URL = job.ID(), clean(start)
	fresh, err := t.follow(job)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]bool{"begun": fresh})
}

// follow defers the request for a page, unless the crawl has seen it. Both the
// record and the request take effect when the job succeeds; if two jobs find
// the same page at the same time, one is retried, and sees the record.
func (t *task) follow(job *jobhost.Job) (fresh bool, err error) {
	key := "crawl/" + t.Crawl + "/" + digest(t.URL)
	version, err := job.KV().Version(key)
	if err != nil || version > 0 {
		return false, err
	}
	if err := job.KV().CompareAndSet(key, 0, []byte(t.URL)); err != nil {
		return false, err
	}
	if err := job.KV().Set(key, []byte(t.URL), rememberFor); err != nil {
		return false, err
	}
	args, err := json.Marshal(t)
	if err != nil {
		return false, err
	}
	_, err = job.Defer(jobhost.Request{URL: t.URL, Header: jobhost.Header{"accept": {"text/html"}}}, "page", args)
	return true, err
}

// scraped processes a page. A page that can't be fetched fails the job
// permanently, since the host has retried often enough.
func scraped(job *jobhost.Job) ([]byte, error) {
	reply, err := jobhost.ParseReply(job.Input())
	if err != nil {
		return nil, err
	}
	var t task
	if err := json.Unmarshal(reply.Args, &t); err != nil {
		return nil, jobhost.Permanent(err)
	}
	if reply.Err != nil {
		return nil, jobhost.Permanent(errors.Join(errors.New(t.URL), reply.Err))
	}
	base, err := url.Parse(t.URL)
	if err != nil {
		return nil, jobhost.Permanent(err)
	}
	r := result{URL: t.URL, Status: reply.Response.Status, Links: []string{}}
	if kind, _, _ := strings.Cut(reply.Response.Header.Get("content-type"), ";"); kind == "text/html" {
		r.Title, r.Links = read(base, reply.Response.Body)
	}
	for _, link := range r.Links {
		next := task{URL: link, Depth: t.Depth - 1, Crawl: t.Crawl}
		if t.Depth == 0 || !sameSite(base, link) {
			continue
		}
		fresh, err := next.follow(job)
		if err != nil {
			return nil, err
		}
		if fresh {
			r.Followed++
		}
	}
	out := json.NewEncoder(job)
	out.SetEscapeHTML(false)
	return nil, out.Encode(&r)
}
