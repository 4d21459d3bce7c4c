package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/api/wire"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// octets are the headers of an upload.
var octets = []string{"Content-Type", wire.Bytes}

func (f *fixture) upload(body string) jobhost.Upload {
	f.Helper()
	got := f.do("POST", "/v1/payloads", body, octets...)
	f.want(got, 201, "payload_ref")
	var upload jobhost.Upload
	if err := json.Unmarshal([]byte(got.body), &upload); err != nil {
		f.Fatal(err)
	}
	return upload
}

func TestUpload(t *testing.T) {
	t.Parallel()
	cat := hosttest.Worker("cat", guests.Cat)
	cat.Limits.OutputBytes = 4 << 20
	f := setup(t, options{host: func(c *host.Config) { c.Workers = append(c.Workers, cat) }})
	large := strings.Repeat("0123456789", 300_000)
	upload := f.upload(large)
	got := f.do("POST", "/v1/jobs?wait=10s", `{"worker":"cat","id":"a","payload_ref":"`+upload.Ref+`"}`)
	f.want(got, 201, `"payload_size":3000000`)
	for _, path := range []string{"/v1/jobs/a/payload", "/v1/jobs/a/result"} {
		got := f.do("GET", path, "")
		f.want(got, 200)
		if got.body != large || got.header.Get("Content-Length") != "3000000" || !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %d bytes with %v", path, len(got.body), got.header)
		}
		head := f.do("HEAD", path, "")
		if head.status != 200 || head.body != "" || head.header.Get("Content-Length") != "3000000" {
			t.Errorf("HEAD %s: %d with %v", path, head.status, head.header)
		}
	}
	second := f.upload("second")
	got = f.do("POST", "/v1/jobs:batch", `{"worker":"test","payload_ref":"`+second.Ref+`"}`+"\n"+`{"worker":"test","payload_ref":"`+second.Ref+`"}`+"\n",
		"Content-Type", wire.NDJSON)
	f.want(got, 200, `"index":0,"id":`, `"code":"conflict"`)
}

func TestUploadRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	f.want(f.do("POST", "/v1/payloads", "x", append(octets, "Authorization", "")...), 401)
	f.want(f.do("POST", "/v1/payloads", "{}"), 415)
	f.want(f.do("POST", "/v1/payloads", "x", append(octets, "Content-Encoding", "gzip")...), 415)
	f.want(f.do("POST", "/v1/payloads?x=1", "x", octets...), 400)
	f.want(f.do("GET", "/v1/payloads", ""), 405)
	f.want(f.do("GET", "/v1/jobs/nobody/payload", ""), 404)
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test","payload_ref":"x"}`), 400, "payload_ref")
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test","payload_ref":1}`), 400, "payload_ref")
	f.want(f.do("POST", "/v1/jobs", `{"worker":"test","payload_ref":"`+f.upload("x").Ref+`","payload":"y"}`), 400, "payload_ref")
}

// TestUploadBreaksOff: what did not arrive as a whole is no payload.
func TestUploadBreaksOff(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	conn := f.dial()
	conn.send("POST /v1/payloads HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: " + wire.Bytes + "\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\nZ\r\n")
	if status := conn.status(); status != 400 {
		t.Errorf("got status %d", status)
	}
}

// TestUploadsAtOnce: there are only so many, and each is given back.
func TestUploadsAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t, options{api: func(c *api.Config) { c.Limits.Uploads = 1 }})
	answer := make(chan int, 1)
	begin := func() *io.PipeWriter {
		first, w := io.Pipe()
		go func() {
			r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+f.addr+"/v1/payloads", first)
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", wire.Bytes)
			resp, err := f.http.Do(r)
			if err != nil {
				answer <- 0
				return
			}
			resp.Body.Close()
			answer <- resp.StatusCode
		}()
		_, _ = w.Write([]byte("x")) // what has no body yet may not be sent; one that is refused is closed
		return w
	}
	w := begin()
	for f.do("POST", "/v1/payloads", "x", octets...).status != 429 {
		select {
		case status := <-answer: // it came while another one was under way
			if status != 429 {
				t.Fatalf("the first one got status %d", status)
			}
			w = begin()
		default:
		}
		if t.Context().Err() != nil {
			t.Fatal("both were taken")
		}
	}
	_ = w.Close()
	if status := <-answer; status != 201 {
		t.Errorf("the first one got status %d", status)
	}
	f.want(f.do("POST", "/v1/payloads", "x", octets...), 201)
}

// halfRead is a server whose contents can't be read to their end.
type halfRead struct {
	jobhost.Server
	first int // bytes that can be read
}

func (b halfRead) OpenResult(context.Context, string, int) (jobhost.Content, error) {
	return jobhost.Content{
		Size: 200_000,
		ReadCloser: io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, b.first)), iotest.ErrReader(
			&jobhost.Error{Code: jobhost.CodeInternal, Message: "the content is damaged", Cause: errors.New("at /secret/path")}))),
	}, nil
}

// TestResultBreaksOff: half a result is never taken for all of it.
func TestResultBreaksOff(t *testing.T) {
	t.Parallel()
	f := setup(t, options{api: func(c *api.Config) { c.Server = api.Serving(halfRead{serverOf(c), 0}) }})
	got := f.do("GET", "/v1/jobs/a/result?task=0", "")
	f.want(got, 500, "the content is damaged")
	if strings.Contains(got.body, "secret") || got.header.Get("Content-Length") == "200000" {
		t.Errorf("got %s with %v", got.body, got.header)
	}
	f = setup(t, options{api: func(c *api.Config) { c.Server = api.Serving(halfRead{serverOf(c), 100_000}) }})
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+f.addr+"/v1/jobs/a/result?task=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := f.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if data, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("%d bytes were taken for all", len(data))
	}
}
