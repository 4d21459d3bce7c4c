package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

func wantCode(t *testing.T, err error, code jobhost.Code, texts ...string) {
	t.Helper()
	e, ok := errors.AsType[*jobhost.Error](err)
	if !ok || e.Code != code {
		t.Errorf("got error %v, want code %s", err, code)
		return
	}
	for _, text := range texts {
		if all := e.Error() + " " + e.Hint; !strings.Contains(all, text) {
			t.Errorf("got error %q, want it to say %q", all, text)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close()
	c := client.New(addr, token)
	_, err = c.Submit(t.Context(), jobhost.Spec{Worker: "test"})
	wantCode(t, err, jobhost.CodeUnavailable, "cannot reach jobhost at http://"+addr, "is jobhost running? start it with: jobhost run")
	_, err = c.SubmitBatch(t.Context(), make([]jobhost.Spec, 3))
	wantCode(t, err, jobhost.CodeUnavailable, "cannot reach")
	for _, err := range c.Events(t.Context(), jobhost.EventQuery{}) {
		wantCode(t, err, jobhost.CodeUnavailable, "cannot reach")
	}
}

func TestBadAddress(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "http://", "ftp://host", "http://user:secret@host", "http://host?x=1", "http://a b", "://"} {
		_, err := client.New(base, "").Workers(t.Context())
		wantCode(t, err, jobhost.CodeInvalid)
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the message tells the password: %v", base, err)
		}
	}
}

func TestNotJobhost(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer http.HandlerFunc
		code   jobhost.Code
		text   string
	}{
		{"a page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, jobhost.CodeInternal, "cannot be read"},
		{"an error page", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) }, jobhost.CodeUnavailable, `"502 Bad Gateway", which is not from jobhost`},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, jobhost.CodeUnavailable, "307"},
		{"a huge answer", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2000)) }, jobhost.CodeTooLarge, "1000"},
		{"a hang-up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, jobhost.CodeUnavailable, "cannot reach"},
		{"half an answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		}, jobhost.CodeUnavailable, "broke off"},
		{"silence", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, jobhost.CodeUnavailable, "did not answer"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.answer)
			defer server.Close()
			timeout := time.Minute
			if test.name == "silence" {
				timeout = 200 * time.Millisecond
			}
			c := client.New(server.URL, token, client.WithMaxResponse(1000), client.WithTimeout(timeout))
			defer c.Close()
			_, err := c.Workers(t.Context())
			wantCode(t, err, test.code, test.text)
		})
	}
}

func TestErrorsArriveAsTheyWere(t *testing.T) {
	t.Parallel()
	h := hosttest.Open(t, func(c *host.Config) { c.Workers[0].QueueCapacity = 1 })
	c, _ := serve(t, h)
	spec := jobhost.Spec{Worker: "test", Delay: time.Hour}
	if _, err := c.Submit(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	for worker, want := range map[string]jobhost.Error{
		"test": {Code: jobhost.CodeExhausted, Field: "worker", RetryAfter: time.Second}, "tests": {Code: jobhost.CodeNotFound, Field: "worker"},
	} {
		spec := jobhost.Spec{Worker: worker, Delay: time.Hour}
		_, here := h.Submit(t.Context(), spec)
		_, there := c.Submit(t.Context(), spec)
		sent, arrived := new(jobhost.Error), new(jobhost.Error)
		if !errors.As(here, &sent) || !errors.As(there, &arrived) || *sent != *arrived {
			t.Errorf("got %+v, want %+v", there, here)
		}
		if arrived.Code != want.Code || arrived.Field != want.Field || arrived.RetryAfter != want.RetryAfter || arrived.Message == "" || arrived.Hint == "" {
			t.Errorf("got %+v, want %+v", arrived, want)
		}
	}
	_, err := c.Submit(t.Context(), jobhost.Spec{Worker: "test", Tasks: -1, MaxAttempts: -1})
	if all, ok := err.(interface{ Unwrap() []error }); !ok || len(all.Unwrap()) != 2 {
		t.Errorf("got %v, want both faults", err)
	}
	if _, base := serve(t, hosttest.Open(t)); true {
		_, err = client.New(base, "").Submit(t.Context(), spec)
		wantCode(t, err, jobhost.CodeDenied, "this needs the token")
		_, err = client.New(base, "another-token").Submit(t.Context(), spec)
		wantCode(t, err, jobhost.CodeDenied, "the token is not that of the host at "+base)
	}
}

func TestSubmitWait(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, hosttest.Open(t))
	job, err := c.SubmitWait(t.Context(), jobhost.Spec{Worker: "test", Delay: 50 * time.Millisecond})
	if err != nil || job.State != jobhost.Succeeded {
		t.Errorf("got %+v, %v", job, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	job, err = c.SubmitWait(ctx, jobhost.Spec{Worker: "test", ID: "s", Delay: time.Hour})
	if !errors.Is(err, context.DeadlineExceeded) || job.ID != "s" || job.State != jobhost.Scheduled {
		t.Errorf("got %+v, %v; want the job as far as it is", job, err)
	}
}

func TestCopyResult(t *testing.T) {
	t.Parallel()
	cat := hosttest.Worker("cat", guests.Cat)
	cat.Limits.OutputBytes = 1 << 20
	c, _ := serve(t, hosttest.Open(t, func(c *host.Config) { c.Workers = append(c.Workers, cat) }))
	want := bytes.Repeat([]byte{0xff}, 1<<20)
	job, err := c.SubmitWait(t.Context(), jobhost.Spec{Worker: "cat", Payload: want})
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := c.CopyResult(t.Context(), &got, job.ID, 0); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got %d bytes, %v", got.Len(), err)
	}
}

// count yields n specs, and counts those that were taken.
func count(n int, taken *int) iter.Seq[jobhost.Spec] {
	return func(yield func(jobhost.Spec) bool) {
		for i := range n {
			*taken = i + 1
			if !yield(jobhost.Spec{Worker: "test", Payload: fmt.Append(nil, i)}) {
				return
			}
		}
	}
}

func TestSubmitSeq(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, hosttest.Open(t))
	const jobs = 1000
	taken, n := 0, 0
	for answer, err := range c.SubmitSeq(t.Context(), count(jobs, &taken), 30*time.Second) {
		if err != nil || answer.Err != nil {
			t.Fatal(err, answer.Err)
		}
		if answer.Job == nil || answer.Job.State != jobhost.Succeeded || len(answer.Results) != 1 || string(answer.Results[0].Data) != fmt.Sprint(n) {
			t.Fatalf("job %d: got %+v", n, answer)
		}
		n++
	}
	if n != jobs || taken != jobs {
		t.Errorf("got %d answers to %d jobs, want %d", n, taken, jobs)
	}
}

// TestSubmitSeqStops stops after the first answer: the sequence of specs must
// end too, long before its end.
func TestSubmitSeqStops(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, hosttest.Open(t))
	ended := make(chan struct{})
	specs := func(yield func(jobhost.Spec) bool) {
		defer close(ended)
		for yield(jobhost.Spec{Worker: "test"}) {
		}
	}
	for range 10 { // whoever stops does so while more is being sent
		ended = make(chan struct{})
		for _, err := range c.SubmitSeq(t.Context(), specs, 0) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		<-ended
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	why := errors.New("enough")
	ended = make(chan struct{})
	n := 0
	for _, err := range c.SubmitSeq(ctx, specs, 0) {
		if n++; n == 1 {
			cancel(why)
		}
		if err != nil && !errors.Is(err, why) {
			t.Errorf("got %v, want the cause of the context", err)
		}
	}
	<-ended
}

// TestSubmitSeqDoesNotWait has a spec that is long in coming: the answers to
// those before come meanwhile.
func TestSubmitSeqDoesNotWait(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, hosttest.Open(t))
	answered := make(chan struct{})
	specs := func(yield func(jobhost.Spec) bool) {
		if yield(jobhost.Spec{Worker: "test", ID: "first"}) {
			<-answered
			yield(jobhost.Spec{Worker: "test", ID: "second"})
		}
	}
	var ids []string
	for answer, err := range c.SubmitSeq(t.Context(), specs, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if ids = append(ids, answer.Receipt.ID); len(ids) == 1 {
			close(answered)
		}
	}
	if fmt.Sprint(ids) != "[first second]" {
		t.Errorf("got %v", ids)
	}
}

// Ready tells a host that is starting from one that can't take jobs for another reason.
func TestReady(t *testing.T) {
	t.Parallel()
	for _, want := range []*jobhost.Error{
		nil,
		{Code: jobhost.CodeUnavailable, Field: jobhost.FieldStart, Message: "the host is starting", Hint: "try again", RetryAfter: time.Second},
		{Code: jobhost.CodeUnavailable, Field: jobhost.FieldDisk, Message: "the disk is full", RetryAfter: time.Second},
	} {
		_, addr := serve(t, struct{ jobhost.Server }{}, func(c *api.Config) {
			c.Ready = func() error {
				if want == nil {
					return nil
				}
				return want
			}
		})
		err := client.New(addr, "").Ready(t.Context())
		if want == nil {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if got, ok := errors.AsType[*jobhost.Error](err); !ok || *got != *want {
			t.Errorf("got %+v, want %+v", err, want)
		}
	}
}
