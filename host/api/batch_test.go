package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/api/wire"
)

func (f *fixture) batch(query, body string) []wire.Answer {
	f.Helper()
	got := f.do("POST", "/v1/jobs:batch"+query, body, "Content-Type", wire.NDJSON)
	f.want(got, 200)
	var answers []wire.Answer
	for line := range strings.Lines(got.body) {
		var a wire.Answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			f.Fatalf("line %q: %v", line, err)
		}
		if a.Index != len(answers) {
			f.Errorf("line %d is about job %d", len(answers), a.Index)
		}
		answers = append(answers, a)
	}
	return answers
}

func TestBatch(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	long := `{"worker":"test","payload":"` + strings.Repeat("x", 2<<20) + `"}`
	lines := []struct {
		line string
		code jobhost.Code
	}{
		{`{"worker":"test","id":"a","payload":"x"}`, ""},
		{`{"worker":"test","id":"a","payload":"x"}` + "\r", ""},
		{`{"worker":"test","id":"a","payload":"y"}`, jobhost.CodeConflict},
		{`{"worker":"nobody"}`, jobhost.CodeNotFound},
		{`{"worker":"test"`, jobhost.CodeInvalid},
		{`{"worker":"test"} {"worker":"test"}`, jobhost.CodeInvalid},
		{long, jobhost.CodeTooLarge},
		{`{"worker":"test","payload":"` + strings.Repeat("y", 1<<20) + `"}`, ""},
		{`{"worker":"test","id":"last"}`, ""},
	}
	var body strings.Builder
	for i, l := range lines {
		body.WriteString(l.line)
		if i < len(lines)-1 { // the last line ends with the body
			body.WriteString("\n\n \n"[:1+2*(i%2)]) // lines without anything are no jobs
		}
	}
	answers := f.batch("", body.String())
	if len(answers) != len(lines) {
		t.Fatalf("got %d answers to %d lines: %+v", len(answers), len(lines), answers)
	}
	for i, a := range answers {
		switch {
		case lines[i].code == "" && (a.Error != nil || a.ID == ""):
			t.Errorf("line %d: got %+v, want it taken", i, a.Error)
		case lines[i].code != "" && (a.Error == nil || a.Error.Code != lines[i].code):
			t.Errorf("line %d: got %+v, want %s", i, a, lines[i].code)
		}
	}
	if !answers[1].Deduplicated || answers[8].ID != "last" {
		t.Errorf("got %+v", answers)
	}
	if got := f.batch("", ""); len(got) != 0 {
		t.Errorf("an empty batch: got %+v", got)
	}
}

func TestBatchWait(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	answers := f.batch("?wait=2s", `{"worker":"test","payload":"x"}
{"worker":"test","entry":"fail_permanent","payload":"no luck"}
{"worker":"test","delay":"1h"}
{"worker":"test","tasks":2,"payload_base64":"/w=="}
`)
	if len(answers) != 4 {
		t.Fatalf("got %+v", answers)
	}
	for i, state := range []jobhost.State{jobhost.Succeeded, jobhost.Dead, jobhost.Scheduled, jobhost.Succeeded} {
		if answers[i].Job == nil || answers[i].Job.State != state {
			t.Errorf("job %d: got %+v, want %s", i, answers[i], state)
		}
	}
	if r := answers[0].Results; len(r) != 1 || string(r[0].Data()) != "x" {
		t.Errorf("got results %+v", r)
	}
	if r := answers[3].Results; len(r) != 2 || string(r[1].Data()) != "\xff" {
		t.Errorf("got results %+v", r)
	}
}

// TestBatchAnswersWhileItReads sends a line only when the one before was
// answered.
func TestBatchAnswersWhileItReads(t *testing.T) {
	t.Parallel()
	f := setup(t, options{serve: api.ServeConfig{RequestTimeout: 100 * time.Millisecond}})
	conn := f.dial()
	conn.send("POST /v1/jobs:batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n")
	var answers *bufio.Scanner
	for i := range 5 {
		line := fmt.Sprintf("{\"worker\":\"test\",\"id\":\"job-%d\"}\n", i)
		conn.send(fmt.Sprintf("%x\r\n%s\r\n", len(line), line))
		if i == 0 {
			resp, err := http.ReadResponse(conn.reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = resp.Body.Close() })
			answers = bufio.NewScanner(resp.Body)
		}
		if !answers.Scan() || !strings.Contains(answers.Text(), fmt.Sprintf(`"id":"job-%d"`, i)) {
			t.Fatalf("got %q, %v", answers.Text(), answers.Err())
		}
		if i == 2 { // longer than requests may take that are no batch
			f.want(f.do("POST", "/v1/jobs?wait=300ms", `{"worker":"test","delay":"1h"}`), 202)
		}
	}
	conn.send("0\r\n\r\n")
	if answers.Scan() || answers.Err() != nil {
		t.Errorf("got %q, %v, want the end", answers.Text(), answers.Err())
	}
}

// taker takes all jobs, and forgets them.
type taker struct{ jobhost.Server }

func (taker) Submit(context.Context, jobhost.Spec) (jobhost.Receipt, error) {
	return jobhost.Receipt{ID: jobhost.NewID(), State: jobhost.Ready}, nil
}

func (taker) SubmitBatch(_ context.Context, specs []jobhost.Spec) ([]jobhost.Submitted, error) {
	answers := make([]jobhost.Submitted, len(specs))
	for i := range answers {
		answers[i].Receipt = jobhost.Receipt{ID: jobhost.NewID(), State: jobhost.Ready}
	}
	return answers, nil
}

// TestBatchIsStreamed sends more than would fit into memory twice.
func TestBatchIsStreamed(t *testing.T) {
	t.Parallel()
	const jobs = 20_000
	f := setup(t, options{api: func(c *api.Config) { c.Server = api.Serving(taker{serverOf(c)}) }})
	reader, writer := io.Pipe()
	go func() {
		for i := range jobs {
			if _, err := fmt.Fprintf(writer, "{\"worker\":\"test\",\"payload\":\"%d\"}\n", i); err != nil {
				return
			}
		}
		writer.Close()
	}()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+f.addr+"/v1/jobs:batch", reader)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", wire.NDJSON)
	resp, err := f.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answers, n := bufio.NewScanner(resp.Body), 0
	for ; answers.Scan(); n++ {
		if strings.Contains(answers.Text(), "error") {
			t.Fatal(answers.Text())
		}
	}
	if n != jobs || answers.Err() != nil {
		t.Errorf("got %d answers, %v", n, answers.Err())
	}
}

func TestBatchStalls(t *testing.T) {
	t.Parallel()
	f := setup(t, options{api: func(c *api.Config) { c.Limits.Stall, c.Limits.Batches = 50*time.Millisecond, 1 }})
	conn := f.dial()
	conn.send("POST /v1/jobs:batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/x-ndjson\r\nContent-Length: 100\r\n\r\n{")
	if got := conn.status(); got != 400 && got != 0 {
		t.Errorf("got status %d, want the end", got)
	}
	f.batch("", `{"worker":"test"}`) // its place is free again
}
