// Command guest uses net/http in a worker, for the tests.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/go/jobhttp"
)

func init() {
	http.DefaultTransport = jobhttp.New(jobhost.Running, 8)
	jobhost.Handle(post)
}

func main() {}

// post posts a form and tells what came back.
func post(job *jobhost.Job) ([]byte, error) {
	r, err := jobhttp.Client(job).PostForm(string(job.Input()), url.Values{"a": {"b c"}})
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return fmt.Appendf(nil, "%s %v %d %s", r.Status, r.Header, r.ContentLength, body), err
}

// get returns the body of a page.
func get(ctx context.Context, client *http.Client, page string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return "", err
	}
	r, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return string(body), err
}

// many fetches the lines of its input, each in a goroutine, and then what the
// page says, with the default client. Between them it sleeps.
//
//go:wasmexport many
func many(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		pages := strings.Fields(string(job.Input()))
		texts, errs := make([]string, len(pages)), make([]error, len(pages))
		began := time.Now()
		var wg sync.WaitGroup
		for i, page := range pages {
			wg.Go(func() {
				text, err := get(context.Background(), http.DefaultClient, page)
				time.Sleep(10 * time.Millisecond)
				second, err2 := get(context.Background(), http.DefaultClient, page+"?"+text)
				texts[i], errs[i] = second, errors.Join(err, err2)
			})
		}
		wg.Wait()
		return fmt.Appendf(nil, "%s after %v", strings.Join(texts, " "), time.Since(began).Round(10*time.Millisecond)), errors.Join(errs...)
	})
}

// hurry fetches two pages: one for at most a second, another until it is
// cancelled after three, while a third is waited for.
//
//go:wasmexport hurry
func hurry(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		client := jobhttp.Client(job)
		began := time.Now()
		var wg sync.WaitGroup
		tell := func(name string, err error) {
			timeout, ok := errors.AsType[*url.Error](err)
			_, _ = fmt.Fprintf(job, "%s %v after %v;", name, ok && timeout.Timeout(), time.Since(began).Round(500*time.Millisecond))
		}
		wg.Go(func() {
			quick := *client
			quick.Timeout = time.Second
			_, err := get(context.Background(), &quick, string(job.Input()))
			tell("timeout", err)
		})
		ctx, cancel := context.WithCancel(context.Background())
		wg.Go(func() {
			_, err := get(ctx, client, string(job.Input()))
			tell("cancel", err)
		})
		wg.Go(func() {
			time.Sleep(3 * time.Second)
			cancel()
		})
		_, err := get(context.Background(), client, string(job.Input()))
		tell("other", err)
		wg.Wait()
		return nil, err
	})
}
