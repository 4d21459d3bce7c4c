package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
)

// script is a server of events that answers the nth request with the nth function.
func script(t *testing.T, answers ...http.HandlerFunc) *client.Client {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		if i >= len(answers) {
			t.Errorf("there was request number %d", i)
			return
		}
		answers[i](w, r)
	}))
	t.Cleanup(server.Close)
	c := client.New(server.URL, token)
	t.Cleanup(c.Close)
	return c
}

// send answers with events of these numbers and hangs up.
func send(t *testing.T, last string, numbers ...int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Last-Event-ID"); got != last {
			t.Errorf("got Last-Event-ID %q, want %q", got, last)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": hello\n\n")
		for _, n := range numbers {
			fmt.Fprintf(w, "id: x.%d\nevent: started\ndata: {\"seq\":%d,\"kind\":\"started\"}\n\n", n, n)
		}
	}
}

func collect(t *testing.T, c *client.Client, query jobhost.EventQuery) (numbers []uint64, err error) {
	for event, err := range c.Events(t.Context(), query) {
		if err != nil {
			return numbers, err
		}
		numbers = append(numbers, event.Seq)
	}
	t.Error("the events ended without an error")
	return numbers, nil
}

func TestEventsGoOn(t *testing.T) {
	t.Parallel()
	c := script(t,
		send(t, "", 1, 2),
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "starting", http.StatusServiceUnavailable) },
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "event: end\ndata: %s\n\n", tooSlow) },
		send(t, "x.2"),
		send(t, "x.2", 3),
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "event: resync\ndata: {}\n\n") },
	)
	numbers, err := collect(t, c, jobhost.EventQuery{})
	if fmt.Sprint(numbers) != "[1 2 3]" {
		t.Errorf("got events %v", numbers)
	}
	wantCode(t, err, jobhost.CodeUnavailable, "events are lost")
}

const tooSlow = `{"type":"x","title":"x","status":429,"detail":"the reader was too slow","code":"exhausted"}`

func TestEventsEnd(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer http.HandlerFunc
		code   jobhost.Code
		text   string
	}{
		{"the host says so", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "event: end\ndata: %s\n\n", tooSlow) }, jobhost.CodeExhausted, "too slow"},
		{"broken off before the first event", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, ": hello\n\n") }, jobhost.CodeUnavailable, "broke off"},
		{"no events", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: what\n\n") }, jobhost.CodeInternal, "cannot be read"},
		{"refused", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, tooSlow)
		}, jobhost.CodeExhausted, "too slow"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := collect(t, script(t, test.answer), jobhost.EventQuery{})
			wantCode(t, err, test.code, test.text)
		})
	}
}

// TestEventsStop checks that the connection ends with the loop.
func TestEventsStop(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	c := script(t, func(w http.ResponseWriter, r *http.Request) {
		send(t, "", 1)(w, r)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
		close(gone)
	})
	for event, err := range c.Events(t.Context(), jobhost.EventQuery{}) {
		if err != nil || event.Seq != 1 {
			t.Fatalf("got %+v, %v", event, err)
		}
		break
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the connection is still there")
	}
}
