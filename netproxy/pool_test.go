package netproxy_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/jobhost/jobhost/netproxy"
)

// heard is what a handler was told.
type heard struct {
	what string // "complete", "error" or "retry"
	task *netproxy.Task
	resp *netproxy.Response
	err  *netproxy.Error
}

// listener is a handler that passes on what it is told.
type listener chan heard

func (l listener) OnComplete(_ context.Context, t *netproxy.Task, r *netproxy.Response) {
	l <- heard{what: "complete", task: t, resp: r}
}

func (l listener) OnError(_ context.Context, t *netproxy.Task, e *netproxy.Error) {
	l <- heard{what: "error", task: t, err: e}
}

func (l listener) Retry(_ context.Context, t *netproxy.Task) { l <- heard{what: "retry", task: t} }

func TestProcessor(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, "done")
	})
	p := netproxy.NewProcessor(netproxy.ProcessorConfig{Client: localClient(t, netproxy.Config{}, s)})
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	l := make(listener, 10)
	for _, path := range []string{"/fast", "/slow"} {
		task := netproxy.NewTask(newRequest(t, netproxy.RequestSpec{URL: s.URL + path}), l, "cb", []byte("args"))
		if err := p.Enqueue(task); err != nil {
			t.Fatal(err)
		}
	}
	if h := <-l; h.what != "complete" || string(h.resp.Body) != "done" || string(h.resp.Args) != "args" || h.task.Callback() != "cb" {
		t.Errorf("got %+v", h)
	}
	if err := p.Stop(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if h := <-l; h.what != "retry" {
		t.Errorf("got %+v", h)
	}
	close(release)
}
