package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
)

// TestWatchFiberGoesOn: a watch goes on after its last output, even before the first
// one, and ends with the fiber that it began with.
func TestWatchFiberGoesOn(t *testing.T) {
	t.Parallel()
	known := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":"a","worker":"test","status":"idle","created_at":"2026-11-22T02:54:27.910009037Z","restarts":0,"waiting":0,"received":9,"emitted":7,"subscribers":0}`)
	}
	watch := func(last string, numbers ...int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			if got := r.Header.Get("Last-Event-ID"); got != last || last == "" && q.Get("after") != "7" || q.Get("created_at") != "2026-11-22T02:54:27.910009037Z" {
				t.Errorf("got Last-Event-ID %q and %v, want %q", got, q, last)
			}
			fmt.Fprint(w, ": hello\n\n")
			for _, n := range numbers {
				fmt.Fprintf(w, "id: x.%d\nevent: output\ndata: {\"seq\":%d,\"data\":\"m\"}\n\n", n, n)
			}
		}
	}
	c := script(t, known, watch(""), watch("", 8), watch("x.8", 9), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"detail":"it has ended","code":"not_found","fiber_ended":true}`)
	})
	var numbers []uint64
	var end error
	for o, err := range c.WatchFiber(t.Context(), jobhost.FiberQuery{ID: "a"}) {
		if err != nil {
			end = err
			break
		}
		numbers = append(numbers, o.Seq)
	}
	if fmt.Sprint(numbers) != "[8 9]" || !errors.Is(end, jobhost.ErrFiberEnded) {
		t.Errorf("got %v, %v", numbers, end)
	}
}

// TestStartFiberFails: a host that lets nobody wait says so at once, and one whose API
// has enough of waiting is asked again.
func TestStartFiberFails(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, hosttest.Open(t, func(c *host.Config) { c.Fibers = host.Fibers{Max: 1, FailWhenFull: true} }))
	spec := jobhost.FiberSpec{ID: "a", Worker: "test", Entry: "fiber"}
	if _, err := c.StartFiber(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	spec.ID = "b"
	_, err := c.StartFiber(t.Context(), spec)
	wantCode(t, err, jobhost.CodeExhausted, "as many as may")

	late := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"detail":"late","code":"exhausted","field":"wait"}`)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := script(t, late, late, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id":"b"}`) })
	if f, err := s.StartFiber(ctx, spec); err != nil || f.ID != "b" {
		t.Errorf("got %+v, %v", f, err)
	}
}
