package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/smalldisk"
)

// A disk fills up, first up to the watermark and then to the last byte, while
// jobs are submitted and run. New ones are refused at once, no acknowledged one
// is lost, and the host recovers on its own when there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	const disk = 64 << 20
	dir := smalldisk.New(t, disk)
	s, book := newSite(t), newLedger()
	s.replace("log_level", fmt.Sprintf("store = %q\ndata = %q\nmin_free = \"24MiB\"\nlog_level", "sqlite:"+dir, filepath.Join(s.dir, "data")))
	host := s.start()
	defer host.kill()
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for producer := range 4 {
		load.Go(func() { submitOn(ctx, host, book, fmt.Sprintf("d%d", producer)) })
	}
	awaitAcks(t, book, 100)

	filler := filepath.Join(dir, "watermark")
	if err := os.WriteFile(filler, make([]byte, disk-(20<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := awaitSubmit(t, host, func(err error) bool { return jobhost.CodeOf(err) == jobhost.CodeUnavailable })
	if refused > time.Second {
		t.Errorf("new jobs were refused after %v", refused)
	}
	// The rest is filled by another program, to the last byte.
	free := smalldisk.Fill(t, dir)
	<-time.After(300 * time.Millisecond)
	free()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	took := awaitSubmit(t, host, func(err error) bool { return err == nil })
	t.Logf("refused after %v, took jobs again after %v", refused.Round(time.Millisecond), took.Round(time.Millisecond))
	before := book.acks()
	awaitAcks(t, book, before+100)
	cancel()
	load.Wait()
	checkResults(t, host, book)
	if code := host.stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM:\n%s", code, host.logText())
	}
}

// submitOn submits jobs until the context ends, whatever happens to each.
func submitOn(ctx context.Context, host *process, book *ledger, prefix string) {
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d", prefix, i)
		_, err := host.Submit(ctx, jobhost.Spec{ID: id, Worker: "echo", Payload: []byte(id)})
		if err == nil {
			book.ack(id)
			continue
		}
		select {
		case <-time.After(time.Duration(rand.N(20)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// awaitSubmit submits until the answer is as wanted and returns how long that took.
func awaitSubmit(t *testing.T, host *process, wanted func(error) bool) time.Duration {
	t.Helper()
	began := time.Now()
	for i := 0; ; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := host.Submit(ctx, jobhost.Spec{Worker: "echo"})
		cancel()
		if wanted(err) {
			return time.Since(began)
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("the answer is still %v:\n%s", err, host.logText())
		}
		<-time.After(5 * time.Millisecond)
	}
}

// awaitAcks returns when that many jobs were acknowledged.
func awaitAcks(t *testing.T, book *ledger, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); book.acks() < n; <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d jobs were acknowledged within a minute, want %d", book.acks(), n)
		}
	}
}

// A backup of a running host holds every job that was acknowledged before it
// began, and a host that starts from it runs those that had not ended.
func TestBackupOfARunningHost(t *testing.T) {
	t.Parallel()
	s, book := newSite(t), newLedger()
	host := s.start()
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	all := newLedger()
	for producer := range 4 {
		load.Go(func() { submitOn(ctx, host, all, fmt.Sprintf("b%d", producer)) })
	}
	awaitAcks(t, all, 200)
	for _, id := range all.unseen(1 << 20) {
		book.ack(id)
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Dir = s.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("jobhost %v: %v\n%s", args, err, out)
		}
	}
	command("backup", "copy", "-f", "manifest.toml")
	awaitAcks(t, all, all.acks()+50) // it continues
	cancel()
	load.Wait()
	host.kill()
	command("restore", "copy", "--replace", "-f", "manifest.toml")
	host = s.start()
	checkResults(t, host, book)
	if code := host.stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
}
