package host

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/hub"
)

// TestWatcherOfOneWorkflow follows one workflow over HTTP while a host tells of 40,000 other jobs
// a second: the stream goes on, and has each of its events. It takes as many events as a
// second has, as fast as they come; with JOBHOST_CHAOS=1 a minute at that rate.
func TestWatcherOfOneWorkflow(t *testing.T) {
	t.Parallel()
	const (
		perSecond = 40_000 * 3 // each job is submitted, starts and ends
		every     = 1000       // of which one is of the workflow
		atATime   = perSecond / 200
	)
	seconds, awaitTurn := 1, func(time.Time) {}
	if os.Getenv("JOBHOST_CHAOS") != "" {
		seconds, awaitTurn = 60, func(due time.Time) { <-time.After(time.Until(due)) }
	}
	h := &Host{cfg: Config{OnEvent: func(jobhost.Event) {}}, hub: newHub(func() {})}
	read := watchWorkflow(t, h, "wf-watched")
	total, begun := seconds*perSecond, time.Now()
	for i := 0; i < total; i++ {
		if i%atATime == 0 {
			awaitTurn(begun.Add(time.Duration(i) * time.Second / perSecond))
		}
		kind := []jobhost.EventKind{jobhost.EventSubmitted, jobhost.EventStarted, jobhost.EventEnded}[i%3]
		e := jobhost.Event{Kind: kind, Job: fmt.Sprint("job-", i/3), Worker: "w", Time: begun}
		if i%every == 0 {
			e.Kind, e.Job, e.Workflow = jobhost.EventStarted, fmt.Sprint("step-", i/every), "wf-watched"
		}
		h.publish(e)
		if i%(every*512) == 0 && i > 0 {
			awaitRead(t, read, i/every-512) // so that a slow machine isn't taken for a fault
		}
	}
	took := time.Since(begun)
	awaitRead(t, read, total/every)
	t.Logf("%d events in %v, %.0f a second; the watcher read its %d", total, took, float64(total)/took.Seconds(), read.Load())
	if slow := h.hub.Stats().Slow; slow > 0 {
		t.Errorf("%d readers were too slow", slow)
	}
}

// TestSlowReaderHoldsLittle doesn't read large events: what is kept for one reader is bounded, since
// there may be hundreds, and those that were ended hold what they have not read until they are gone.
func TestSlowReaderHoldsLittle(t *testing.T) {
	t.Parallel()
	h := &Host{cfg: Config{OnEvent: func(jobhost.Event) {}}, hub: newHub(func() {})}
	reader := h.hub.Subscribe(hub.Query{})
	defer reader.Close()
	large := &jobhost.Failure{Message: strings.Repeat("x", 100_000)}
	published := 0
	for ; reader.Err() == nil && published < 1000; published++ {
		h.publish(jobhost.Event{Kind: jobhost.EventDead, Job: "a", Failure: large})
	}
	if published > 12 {
		t.Errorf("a reader has %d events of 100 kB unread", published)
	}
}

// watchWorkflow follows a workflow over HTTP, and returns how many of its events have been
// read once it has begun.
func watchWorkflow(t *testing.T, h *Host, id string) *atomic.Int64 {
	t.Helper()
	const token = "0123456789abcdefghijklmnopqrstuv"
	face, err := api.New(api.Config{Server: api.Serving(&running{host: h}), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(face)
	t.Cleanup(server.Close)
	t.Cleanup(face.Stop)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/events?workflow="+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		t.Fatalf("got %s", resp.Status)
	}
	read, done := new(atomic.Int64), make(chan struct{})
	t.Cleanup(func() { <-done })
	t.Cleanup(func() { resp.Body.Close() })
	go func() {
		defer close(done)
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			text, isData := strings.CutPrefix(lines.Text(), "data: ")
			if !isData {
				continue
			}
			var e jobhost.Event
			want := fmt.Sprint("step-", read.Load())
			if err := json.Unmarshal([]byte(text), &e); err != nil || e.Job != want {
				t.Errorf("got %s (%v), want the event of %s", text, err, want)
				read.Store(-1)
				return
			}
			read.Add(1)
		}
	}()
	for h.hub.Stats().Subscriptions == 0 {
		goruntime.Gosched() // the answer begins before the hub knows of its reader
	}
	return read
}

// awaitRead returns when so many events have been read, or the reader has failed.
func awaitRead(t *testing.T, read *atomic.Int64, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for read.Load() < int64(n) {
		if read.Load() < 0 {
			t.Fatal("the stream has ended")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d events were read, want %d", read.Load(), n)
		}
	}
}
