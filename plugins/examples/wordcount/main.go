// Command wordcount is a worker that counts the lines, words and bytes of a
// text and finds its most frequent words.
package main

import (
	"encoding/json"
	"io"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func init() {
	// encoding/json analyzes a type when it first encounters it. Here that happens before the
	// sandbox's memory is saved as the initial state of all jobs.
	_ = encode(io.Discard, count([]byte("warm")))
	jobhost.Handle(wordcount)
}

func main() {}

func wordcount(job *jobhost.Job) ([]byte, error) {
	return nil, encode(job, count(job.Input()))
}

// encode formats a report for people.
func encode(w io.Writer, r report) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
