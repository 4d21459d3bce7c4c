// Command visits is a worker that counts the visits of web pages from pieces of
// access logs. A line that it has seen before, in any piece, counts once; the
// first visit of a page is reported to another worker.
package main

import (
	"errors"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func init() { jobhost.Handle(visits) }

func main() {}

const (
	// mostLines keeps a piece within the keys that a job may change: one for
	// each line and one for each page.
	mostLines = 400
	// remember is how long a line is remembered. Log shippers repeat themselves within minutes.
	remember = 24 * time.Hour
)

// visits counts the lines of its input and returns how many were new. All of it takes effect
// together: a piece that fails half-way is counted again from scratch, not twice.
func visits(job *jobhost.Job) ([]byte, error) {
	lines := strings.Split(strings.TrimRight(string(job.Input()), "\n"), "\n")
	if len(lines) > mostLines {
		return nil, jobhost.Permanent(errors.New("a piece may have " + strconv.Itoa(mostLines) + " lines: split the log"))
	}
	fresh, repeated := 0, 0
	for _, line := range lines {
		page := pageOf(line)
		if page == "" {
			continue
		}
		seen, err := job.KV().Get(lineKey(line))
		switch {
		case err == nil && len(seen) > 0:
			repeated++
			continue
		case err != nil && !errors.Is(err, jobhost.ErrNotFound):
			return nil, err
		}
		if err := count(job, line, page); err != nil {
			return nil, err
		}
		fresh++
	}
	return []byte(strconv.Itoa(fresh) + " new, " + strconv.Itoa(repeated) + " repeated\n"), nil
}

// count counts a visit and remembers its line.
func count(job *jobhost.Job, line, page string) error {
	if err := job.KV().Set(lineKey(line), []byte("1"), remember); err != nil {
		return err
	}
	n, err := job.KV().Add("visits"+page, 1)
	if err != nil {
		return err
	}
	announce, wanted := job.Config("announce")
	if n > 1 || !wanted {
		return nil
	}
	// The page determines the job's id, so that pieces that run at the same time announce it once.
	_, err = job.Submit(jobhost.Spec{Worker: announce, ID: "page-" + digest(page), Payload: []byte(page)})
	return err
}

// pageOf returns the path of a line such as
//
//	192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET /index.html?q=1 HTTP/1.1" 200 2326
//
// without its query, or "" for anything else.
func pageOf(line string) string {
	_, request, _ := strings.Cut(line, `"`)
	fields := strings.Fields(request)
	if len(fields) < 2 || !strings.HasPrefix(fields[1], "/") {
		return ""
	}
	page, _, _ := strings.Cut(fields[1], "?")
	if len(page) > 400 || strings.ContainsFunc(page, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return ""
	}
	return strings.TrimRight(page, `"`)
}

func lineKey(line string) string { return "seen/" + digest(line) }

// digest identifies a line, in 32 hex digits.
func digest(s string) string {
	h := fnv.New128a()
	_, _ = h.Write([]byte(s))
	const digits = "0123456789abcdef"
	var out []byte
	for _, b := range h.Sum(nil) {
		out = append(out, digits[b>>4], digits[b&15])
	}
	return string(out)
}
