package test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/smalldisk"
)

// fullFor is how long a disk stays full, and how many times: JOBHOST_CHAOS=1
// (make chaos) asks for minutes.
func fullFor() (time.Duration, int) {
	if os.Getenv("JOBHOST_CHAOS") != "" {
		return 2 * time.Minute, 3
	}
	return time.Second, 2
}

// hog takes all the room of a disk, and what others give up too, until it is stopped.
type hog struct {
	t    *testing.T
	path string
	stop chan struct{}
	done sync.WaitGroup
}

// fillUp returns when the disk was full once.
func fillUp(t *testing.T, dir string) *hog {
	t.Helper()
	h := &hog{t: t, path: filepath.Join(dir, "hog"), stop: make(chan struct{})}
	f, err := os.Create(h.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := smalldisk.Eat(f); err != nil {
		t.Fatal(err)
	}
	h.done.Go(func() {
		defer f.Close() // it is full
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := smalldisk.Eat(f); err != nil {
					t.Error(err)
				}
			case <-h.stop:
				return
			}
		}
	})
	return h
}

// free gives all the room back.
func (h *hog) free() {
	h.t.Helper()
	close(h.stop)
	h.done.Wait()
	if err := os.Remove(h.path); err != nil {
		h.t.Fatal(err)
	}
}

// storeOn makes a site keep its store on a disk of so many bytes.
func (s *site) storeOn(bytes int) (disk string) {
	s.t.Helper()
	disk = smalldisk.New(s.t, bytes)
	s.replace("log_level", fmt.Sprintf("store = %q\ndata = %q\nmin_free = \"0B\"\nlog_level", "sqlite:"+disk, filepath.Join(s.dir, "data")))
	return disk
}

// readyz returns what a host says of itself to load balancers; 0 = it doesn't answer.
func (s *site) readyz() (code int, body string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.addr+"/readyz", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// isFull reports whether an answer says that the disk is full, and what to do.
func isFull(err error) bool {
	return jobhost.CodeOf(err) == jobhost.CodeUnavailable && strings.Contains(err.Error(), "disk is full") && jobhost.HintOf(err) != ""
}

// Another program fills the disk to the last byte, again and again and for long,
// while jobs are submitted and run. The host is the same process afterwards; during
// that time it refuses jobs, answers questions, loses nothing and runs nothing twice.
func TestFullDiskForLong(t *testing.T) {
	t.Parallel()
	s, book := newSite(t), newLedger()
	disk := s.storeOn(48 << 20)
	host := s.start()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var load sync.WaitGroup
	for producer := range 4 {
		load.Go(func() { submitOn(ctx, host, book, fmt.Sprintf("f%d", producer)) })
	}
	long, times := fullFor()
	for round := range times {
		awaitAcks(t, book, book.acks()+200)
		hog := fillUp(t, disk)
		refused := awaitSubmit(t, host, isFull)
		full := time.NewTimer(long)
		for over := false; !over; {
			select {
			case <-full.C:
				over = true
			case <-time.After(long / 10):
				if _, err := host.Jobs(t.Context(), jobhost.Filter{Limit: 10}); err != nil {
					t.Fatalf("a question on a full disk: %v", err)
				}
			}
		}
		if code, body := s.readyz(); code != http.StatusServiceUnavailable || !strings.Contains(body, "disk") {
			t.Errorf("/readyz on a full disk: %d %s", code, body)
		}
		hog.free()
		took := awaitSubmit(t, host, func(err error) bool { return err == nil })
		if took > 5*time.Second {
			t.Errorf("jobs were taken again after %v", took)
		}
		t.Logf("round %d: refused after %v, took jobs again after %v; %d acknowledged so far",
			round, refused.Round(time.Millisecond), took.Round(time.Millisecond), book.acks())
	}
	awaitAcks(t, book, book.acks()+100)
	cancel()
	load.Wait()
	checkResults(t, host, book)
	text := host.logText()
	if strings.Contains(text, "settlement is not durable") {
		t.Error("a settlement was given up for want of room")
	}
	if began, ended := strings.Count(text, "the disk is full: new jobs"), strings.Count(text, "the disk has room again"); began != ended || began < times {
		t.Errorf("the log says %d times that the disk is full and %d times that it has room again", began, ended)
	}
	if code := host.stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM:\n%s", code, host.logText())
	}
}

// A host that is killed while its disk is full starts on that disk, answers
// questions, ends on request, and continues when there is room.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	s, book := newSite(t), newLedger()
	disk := s.storeOn(32 << 20)
	host := s.start()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var load sync.WaitGroup
	for producer := range 4 {
		load.Go(func() { submitOn(ctx, host, book, fmt.Sprintf("s%d", producer)) })
	}
	awaitAcks(t, book, 200)
	hog := fillUp(t, disk)
	awaitSubmit(t, host, isFull)
	cancel()
	load.Wait()
	known := book.unseen(1)[0]
	client := host.Client
	host.kill()

	for _, stopIt := range []bool{true, false} {
		again := s.begin("run")
		again.Client = client
		awaitRefusing(t, s, again)
		if _, err := again.Job(t.Context(), known); err != nil {
			t.Errorf("a question after a start on a full disk: %v", err)
		}
		if _, err := again.Submit(t.Context(), jobhost.Spec{Worker: "echo"}); !isFull(err) {
			t.Errorf("a submit after a start on a full disk: %v", err)
		}
		if stopIt {
			if code := again.stop(); code != 0 {
				t.Errorf("exit code %d after SIGTERM on a full disk:\n%s", code, again.logText())
			}
			continue
		}
		hog.free()
		took := awaitSubmit(t, again, func(err error) bool { return err == nil })
		t.Logf("took jobs again after %v", took.Round(time.Millisecond))
		checkResults(t, again, book)
		if code := again.stop(); code != 0 {
			t.Errorf("exit code %d after SIGTERM:\n%s", code, again.logText())
		}
	}
}

// awaitRefusing returns when a host that runs says that its disk is full.
func awaitRefusing(t *testing.T, s *site, host *process) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		if code, body := s.readyz(); code == http.StatusServiceUnavailable && strings.Contains(body, "disk") {
			return
		}
		select {
		case <-host.read:
			t.Fatalf("the host ended on a full disk:\n%s", host.logText())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the host does not run on a full disk:\n%s", host.logText())
		}
	}
}
