package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
)

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d\n", strings.Repeat("w ", i%7), i)
	}
	return b.String()
}

// TestLinesInOrder has later jobs end before earlier ones.
func TestLinesInOrder(t *testing.T) {
	t.Parallel()
	const n = 2000
	server := &linesServer{}
	var mu sync.Mutex
	waiting := map[string]chan struct{}{}
	of := func(payload string) chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		key := payload[strings.LastIndexByte(payload, ' ')+1:]
		if waiting[key] == nil {
			waiting[key] = make(chan struct{})
		}
		return waiting[key]
	}
	server.onWait = func(_ context.Context, payload string) {
		var i int
		_, _ = fmt.Sscan(payload[strings.LastIndexByte(payload, ' ')+1:], &i)
		if i%2 == 0 && i+1 < n {
			<-of(fmt.Sprint(i + 1))
			return
		}
		close(of(fmt.Sprint(i)))
	}
	c := newConsole(t, server)
	c.env.stdin = strings.NewReader(numbered(n))
	if code := c.run(t, "submit", "wordcount", "-l", "--wait", "-v"); code != exitOK {
		t.Fatalf("exit code %d: %s", code, c.errOut.String())
	}
	lines := strings.Split(strings.TrimSpace(c.out.String()), "\n")
	if len(lines) != n {
		t.Fatalf("%d lines, want %d", len(lines), n)
	}
	for i, got := range lines {
		if want := fmt.Sprintf("%d words", i%7+1); got != want {
			t.Fatalf("line %d is %q, want %q", i+1, got, want)
		}
	}
	if want := "2000 submitted, 2000 ok, 0 failed"; !strings.Contains(c.errOut.String(), want) {
		t.Errorf("stderr %q lacks %q", c.errOut.String(), want)
	}
}

// TestLinesBatches checks the size of batches and how many are under way.
func TestLinesBatches(t *testing.T) {
	t.Parallel()
	server := &linesServer{}
	var running, most, batches atomic.Int64
	arrived := make(chan struct{}, 100)
	server.onBatch = func(specs []jobhost.Spec) ([]jobhost.Submitted, error) {
		first := batches.Add(1) == 1
		now := running.Add(1)
		defer running.Add(-1)
		for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
		}
		arrived <- struct{}{}
		if len(specs) > batchJobs {
			t.Errorf("a batch has %d jobs", len(specs))
		}
		if first {
			for range 2 { // itself and another: it ends after that has begun
				<-arrived
			}
		}
		return nil, nil
	}
	c := newConsole(t, server)
	c.env.stdin = strings.NewReader(numbered(20 * batchJobs))
	if code := c.run(t, "submit", "wordcount", "-l"); code != exitOK {
		t.Fatalf("exit code %d: %s", code, c.errOut.String())
	}
	if got := strings.Count(c.out.String(), "\n"); got != 20*batchJobs {
		t.Errorf("%d ids", got)
	}
	if got := batches.Load(); got != 20 {
		t.Errorf("%d batches, want 20", got)
	}
	// The printer and the follower each hold one besides those in the channel.
	if got := most.Load(); got < 2 || got > batchesInFlight+2 {
		t.Errorf("%d batches at once", got)
	}
}

// TestLinesBackpressure stops reading when nothing is printed.
func TestLinesBackpressure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &linesServer{}
		ctx, cancel := context.WithCancel(t.Context())
		server.onWait = func(ctx context.Context, _ string) { <-ctx.Done() }
		in := &endless{}
		c := newConsole(t, server)
		c.env.stdin = in
		done := make(chan int)
		go func() { done <- c.env.run(ctx, []string{"submit", "wordcount", "-l", "--wait"}) }()
		synctest.Wait()
		got := server.submitted()
		if most := (batchesInFlight + 2) * batchJobs; got > most {
			t.Errorf("%d jobs submitted before the first ended, want at most %d", got, most)
		}
		cancel()
		if code := <-done; code != exitFailed {
			t.Errorf("exit code %d", code)
		}
	})
}

// endless is an input of lines without an end.
type endless struct{}

func (*endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "x\n"[i%2]
	}
	return len(p) &^ 1, nil
}

// TestLinesStream has lines submitted as they come, not when a batch is full.
func TestLinesStream(t *testing.T) {
	t.Parallel()
	server := &linesServer{}
	batches := make(chan int, 10)
	server.onBatch = func(specs []jobhost.Spec) ([]jobhost.Submitted, error) {
		batches <- len(specs)
		return nil, nil
	}
	in, feed := io.Pipe()
	c := newConsole(t, server)
	c.env.stdin = in
	done := make(chan int)
	go func() { done <- c.run(t, "submit", "wordcount", "-l") }()
	for range 3 {
		_, _ = feed.Write([]byte("a line\n"))
		if got := <-batches; got != 1 {
			t.Errorf("a batch of %d", got)
		}
	}
	_ = feed.Close()
	if code := <-done; code != exitOK {
		t.Errorf("exit code %d: %s", code, c.errOut.String())
	}
}

// TestLinesServerGone ends with an error though the input never does, and
// still prints what was submitted.
func TestLinesServerGone(t *testing.T) {
	t.Parallel()
	server := &linesServer{}
	server.onBatch = func(specs []jobhost.Spec) ([]jobhost.Submitted, error) {
		if string(specs[0].Payload) == "another line" {
			return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "nobody listens there"}
		}
		return nil, nil
	}
	in, feed := io.Pipe()
	t.Cleanup(func() { _ = feed.Close() })
	c := newConsole(t, server)
	c.env.stdin = in
	done := make(chan int)
	go func() { done <- c.run(t, "submit", "wordcount", "-l", "--wait") }()
	_, _ = feed.Write([]byte("a line\n"))
	_, _ = feed.Write([]byte("another line\n"))
	if code := <-done; code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if want := "submit lines 2 to 2: nobody listens there"; !strings.Contains(c.errOut.String(), want) {
		t.Errorf("stderr %q lacks %q", c.errOut.String(), want)
	}
	if got := c.out.String(); got != "2 words\n" {
		t.Errorf("stdout %q", got)
	}
}

// TestLinesQueueFull waits for room and submits what found none again.
func TestLinesQueueFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &linesServer{}
		full := &jobhost.Error{Code: jobhost.CodeExhausted, Message: "the queue is full", RetryAfter: 3 * time.Second}
		var mu sync.Mutex
		calls := 0
		server.onBatch = func(specs []jobhost.Spec) ([]jobhost.Submitted, error) {
			mu.Lock()
			defer mu.Unlock()
			switch calls++; calls {
			case 1:
				return nil, full
			case 2:
				answers := make([]jobhost.Submitted, len(specs))
				for i := range specs {
					if answers[i].Err = full; i%2 == 0 {
						answers[i].Receipt, answers[i].Err = server.take(&specs[i]), nil
					}
				}
				return answers, nil
			}
			return nil, nil
		}
		c := newConsole(t, server)
		c.env.stdin = strings.NewReader("a\nb b\nc c c\nd d d d\n")
		began := time.Now()
		if code := c.run(t, "submit", "wordcount", "-l", "--wait"); code != exitOK {
			t.Errorf("exit code %d: %s", code, c.errOut.String())
		}
		if got, want := c.out.String(), "1 words\n2 words\n3 words\n4 words\n"; got != want {
			t.Errorf("stdout %q, want %q", got, want)
		}
		if got := time.Since(began); got != 6*time.Second {
			t.Errorf("it took %v, want two waits of 3s", got)
		}
		if got := strings.Count(c.errOut.String(), "the queue is full; waiting for room"); got != 1 {
			t.Errorf("the full queue was told %d times", got)
		}
	})
}
