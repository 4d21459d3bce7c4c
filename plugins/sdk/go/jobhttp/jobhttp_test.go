package jobhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/go/jobhttp"
)

// site answers with method and path; "/never" not at all, "/down" with a fault.
func site(r jobhost.Request) (*jobhost.Response, error) {
	switch _, path, _ := strings.Cut(strings.TrimPrefix(r.URL, "http://"), "/"); path {
	case "never":
		return nil, nil
	case "down":
		return nil, &jobhost.ResponseError{Reason: jobhost.ReasonConnection, Message: "refused"}
	default:
		return &jobhost.Response{Status: 200, Header: jobhost.Header{"Content-Length": {"77"}}, Body: []byte(r.Method + " " + path)}, nil
	}
}

// run runs a handler on the site.
func run(h func(job *jobhost.Job) error) *jobhost.Result {
	return jobhost.Run(func(job *jobhost.Job) ([]byte, error) { return nil, h(job) }, jobhost.Attempt{HTTP: site})
}

// fetch returns the body of what a client gets.
func fetch(ctx context.Context, client *http.Client, method, url string, body io.Reader) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return "", err
	}
	response, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%s, %d long", text, response.ContentLength), err
}

func ExampleClient() {
	handler := func(job *jobhost.Job) ([]byte, error) {
		response, err := jobhttp.Client(job).Get("http://a/page")
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		return io.ReadAll(response.Body)
	}
	fmt.Printf("%s\n", jobhost.Run(handler, jobhost.Attempt{HTTP: site}).Output)
	// Output: GET page
}

// body counts how often it was closed, and can't be read to its end.
type body struct {
	io.Reader
	err    error
	closed int
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.err != nil {
		err = b.err
	}
	return n, err
}

func (b *body) Close() error {
	b.closed++
	return nil
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	cut := errors.New("the file ends")
	for _, tt := range []struct {
		name, method, url, text, host string
		body, err                     error
	}{
		{"get", "GET", "http://a/page#part", "GET page, 8 long", "", nil, nil},
		{"head", "HEAD", "http://a/page", "HEAD page, 77 long", "", nil, nil}, // the body is the fake's
		{"down", "GET", "http://a/down", "", "", nil, jobhost.ReasonConnection},
		{"other host", "GET", "http://a/page", "", "b", nil, nil},
		{"broken body", "PUT", "http://a/page", "", "", cut, cut},
		{"invalid", "GET", "http://a/page", "", "invalid\nhost", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			run(func(job *jobhost.Job) error {
				r, err := http.NewRequestWithContext(t.Context(), tt.method, tt.url, nil)
				if err != nil {
					return err
				}
				b := &body{Reader: strings.NewReader("content"), err: tt.body}
				if r.Body = b; tt.host != "" {
					r.Host = tt.host
				}
				response, err := jobhttp.New(job, 1).RoundTrip(r)
				text := ""
				if err == nil {
					data, _ := io.ReadAll(response.Body)
					text = fmt.Sprintf("%s, %d long", data, response.ContentLength)
				}
				if text != tt.text || (err == nil) != (text != "") || tt.err != nil && !errors.Is(err, tt.err) || b.closed != 1 {
					t.Errorf("%q, %v, closed %d times", text, err, b.closed)
				}
				return nil
			})
		})
	}
}

// TestContexts: a request ends with its context, at whatever stage.
func TestContexts(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancelCause(t.Context())
	reason := errors.New("nobody wants it")
	end(reason)
	synctest.Test(t, func(t *testing.T) {
		got := run(func(job *jobhost.Job) error {
			client := &http.Client{Transport: jobhttp.New(job, 1)}
			late, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			var wg sync.WaitGroup
			for range 2 { // the second one never gets its turn
				wg.Go(func() {
					if _, err := fetch(late, client, "GET", "http://a/never", nil); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v", err)
					}
				})
			}
			wg.Wait()
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("that took %v", took)
			}
			if _, err := fetch(ended, client, "GET", "http://a/page", nil); !errors.Is(err, reason) {
				t.Errorf("%v", err)
			}
			_, err := fetch(t.Context(), client, "GET", "http://a/page", nil)
			return err
		})
		if got.Err != nil || len(got.Requests) != 2 || !got.Requests[0].Dropped || got.Requests[1].Dropped {
			t.Errorf("%v, %+v", got.Err, got.Requests)
		}
	})
}

// TestHammer: goroutines begin, finish and give up requests at the same time.
func TestHammer(t *testing.T) {
	t.Parallel()
	const goroutines, rounds = 16, 40
	got := run(func(job *jobhost.Job) error {
		client := &http.Client{Transport: jobhttp.New(job, 8)}
		var wg sync.WaitGroup
		for i := range goroutines {
			wg.Go(func() {
				for n := range rounds {
					if (i+n)%8 == 0 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
						if _, err := fetch(ctx, client, "GET", "http://a/never", nil); !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("%v", err)
						}
						cancel()
						continue
					}
					want := fmt.Sprintf("PUT %d/%d", i, n)
					got, err := fetch(t.Context(), client, "PUT", fmt.Sprintf("http://a/%d/%d", i, n), strings.NewReader("x"))
					if err != nil || got != fmt.Sprintf("%s, %d long", want, len(want)) {
						t.Errorf("%s, %v", got, err)
					}
				}
			})
		}
		wg.Wait()
		return nil
	})
	dropped := 0
	for _, r := range got.Requests {
		if r.Dropped {
			dropped++
		}
	}
	if sent := len(got.Requests); sent-dropped != goroutines*rounds*7/8 {
		t.Errorf("%d were sent, and %d dropped", sent, dropped)
	}
}
