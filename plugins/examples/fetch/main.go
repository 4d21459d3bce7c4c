// Command fetch is a worker that fetches a list of URLs, one per line, 64 of them
// at a time, and reports the result of each as a line of JSON.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func init() {
	_, _ = json.Marshal(page{}) // done before the sandbox's memory is saved as the initial state of all jobs
	jobhost.Handle(fetch)
}

func main() {}

const (
	// atOnce is how many requests a job may have in flight, and mostURLs how many
	// it may send, unless the manifest says otherwise.
	atOnce   = 64
	mostURLs = 1000
)

// page is the result of a URL.
type page struct {
	URL    string `json:"url"`
	Status int    `json:"status,omitempty"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	// MS is how many milliseconds after the beginning it arrived.
	MS    int64  `json:"ms"`
	Error string `json:"error,omitempty"` // why there was no response
}

// fetch writes a line for each URL, in the order in which the answers arrive.
// One without a response is a line like the others: it doesn't fail the job.
func fetch(job *jobhost.Job) ([]byte, error) {
	requests, err := list(string(job.Input()))
	if err != nil {
		return nil, jobhost.Permanent(&jobhost.Failure{Err: err, Code: "bad_list", Category: jobhost.Validation})
	}
	began, done := time.Now(), int64(0)
	out := json.NewEncoder(job)
	out.SetEscapeHTML(false)
	for i, answer := range job.FetchAll(requests, atOnce) {
		if concernsAll(answer.Err) {
			return nil, answer.Err
		}
		p := page{URL: requests[i].URL, MS: time.Since(began).Milliseconds()}
		if answer.Err != nil {
			p.Error = answer.Err.Error()
		} else {
			sum := sha256.Sum256(answer.Response.Body)
			p.Status, p.Bytes, p.SHA256 = answer.Response.Status, len(answer.Response.Body), hex.EncodeToString(sum[:])
		}
		if err := out.Encode(&p); err != nil {
			return nil, err
		}
		done++
		job.Progress(done, int64(len(requests)))
	}
	return nil, nil
}

// concernsAll reports whether an error affects more than one request: the worker
// has no network access, the job is cancelled, or it has sent too much.
func concernsAll(err error) bool {
	_, one := errors.AsType[*jobhost.ResponseError](err)
	return err != nil && !one && !errors.Is(err, jobhost.ErrInvalid)
}

// list parses the URLs. Empty lines and those that begin with # are skipped.
func list(text string) (requests []jobhost.Request, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			requests = append(requests, jobhost.Request{URL: line})
		}
	}
	if len(requests) == 0 || len(requests) > mostURLs {
		return nil, errors.New("a list has 1 to " + strconv.Itoa(mostURLs) + " URLs, one a line")
	}
	return requests, nil
}
