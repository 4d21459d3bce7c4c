package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state/sqlitestate"
)

// backupRun says for how long and how often backups are made beside a running host.
type backupRun struct {
	size  int64         // of the store when the first begins, at least
	rate  int           // jobs a second, at most
	every time.Duration // from the beginning of one to that of the next, at least
	lasts time.Duration // until the last one begins
}

// backupsAsked returns a run of seconds; with JOBHOST_CHAOS=1 (make chaos) of a
// minute, and with JOBHOST_CHAOS=long of ten.
func backupsAsked() backupRun {
	switch os.Getenv("JOBHOST_CHAOS") {
	case "":
		return backupRun{size: 20 << 20, rate: 500, every: time.Second, lasts: 2 * time.Second}
	case "long":
		return backupRun{size: 1 << 30, rate: 2000, every: 5 * time.Second, lasts: 10 * time.Minute}
	}
	return backupRun{size: 200 << 20, rate: 2000, every: 5 * time.Second, lasts: time.Minute}
}

// Backups are made of a running host under load, one after the other. Each
// succeeds, and restoring it gives all jobs that were acknowledged when it
// began. A drill from the first and the last one, beside the host and with its
// payload store, changes nothing there.
func TestBackupsUnderLoad(t *testing.T) {
	t.Parallel()
	run := backupsAsked()
	folder := t.TempDir()
	s := newSharedSite(t, folder)
	host := s.start()
	grow(t, s, host, run.size)
	runLarge(t, host, "large0", "large1")

	load := newStream(host, run.rate)
	ctx, cancel := context.WithCancel(t.Context())
	var producers sync.WaitGroup
	for p := range load.acked {
		producers.Go(func() { load.produce(ctx, p) })
	}
	defer producers.Wait()
	defer cancel()
	tick := time.NewTicker(run.every)
	defer tick.Stop()
	start := time.Now()
	for n, last := 0, false; !last; n++ {
		last = time.Since(start) >= run.lasts
		load.next(t)
		acked := load.now()
		copied, began := filepath.Join(t.TempDir(), "copy"), time.Now()
		s.command("backup", copied)
		took := time.Since(began)
		restored := newSharedSite(t, folder)
		restored.command("restore", copied)
		wantAcked(t, restored, acked)
		t.Logf("backup %d of %d MiB in %v, log %d MiB, %d jobs acknowledged before it", n,
			fileSize(filepath.Join(copied, sqlitedb.FileName))>>20, took.Round(time.Millisecond), fileSize(s.database()+"-wal")>>20, sum(acked))
		if n == 0 || last {
			drill(t, restored)
		}
		for _, dir := range []string{copied, filepath.Join(restored.dir, "data")} {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		<-tick.C
	}
	t.Logf("%d jobs were acknowledged in %v", sum(load.now()), time.Since(start).Round(time.Second))
	wantLarge(t, host, "large0", "large1")
	cancel()
	producers.Wait()
	if load.failed.Load() > 0 {
		t.Errorf("%d submits were refused", load.failed.Load())
	}
	if code := host.stop(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, host.logText())
	}
}

func (s *site) database() string { return filepath.Join(s.dir, "data", sqlitedb.FileName) }

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// grow fills the store of a host with held jobs.
func grow(t *testing.T, s *site, host *process, size int64) {
	t.Helper()
	filler := []byte(strings.Repeat("filler ", 8000))
	for i := 0; fileSize(s.database()) < size; i++ {
		specs := make([]jobhost.Spec, 16)
		for k := range specs {
			specs[k] = jobhost.Spec{ID: fmt.Sprintf("fill-%d-%d", i, k), Worker: "echo", Payload: filler, Delay: 24 * time.Hour}
		}
		answers, err := host.SubmitBatch(t.Context(), specs)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			if a.Err != nil {
				t.Fatal(a.Err)
			}
		}
	}
}

// stream submits jobs at a rate, with ids in numerical order.
type stream struct {
	host   *process
	pause  time.Duration
	acked  []atomic.Int64 // by producer, the number of acknowledged jobs
	failed atomic.Int64
}

const streamBatch = 50

func newStream(host *process, rate int) *stream {
	const producers = 4
	return &stream{
		host: host, acked: make([]atomic.Int64, producers),
		pause: time.Duration(producers) * streamBatch * time.Second / time.Duration(rate),
	}
}

func streamID(producer int, n int64) string { return fmt.Sprintf("load-%d-%012d", producer, n) }

// produce submits batches until the context ends.
func (l *stream) produce(ctx context.Context, producer int) {
	tick := time.NewTicker(l.pause)
	defer tick.Stop()
	for n := int64(0); ; n += streamBatch {
		specs := make([]jobhost.Spec, streamBatch)
		for k := range specs {
			id := streamID(producer, n+int64(k))
			specs[k] = jobhost.Spec{ID: id, Worker: "echo", Payload: []byte(id)}
		}
		answers, err := l.host.SubmitBatch(ctx, specs)
		if ctx.Err() != nil {
			return
		}
		for _, a := range answers {
			if a.Err != nil {
				err = a.Err
			}
		}
		if err != nil {
			l.failed.Add(1)
			return
		}
		l.acked[producer].Store(n + streamBatch)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// now returns the number of acknowledged jobs of each producer.
func (l *stream) now() []int64 {
	counts := make([]int64, len(l.acked))
	for p := range l.acked {
		counts[p] = l.acked[p].Load()
	}
	return counts
}

// next returns when more have been acknowledged than when it was called.
func (l *stream) next(t *testing.T) {
	t.Helper()
	for before, deadline := sum(l.now()), time.Now().Add(time.Minute); sum(l.now()) == before; <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) || l.failed.Load() > 0 {
			t.Fatalf("no job is acknowledged:\n%s", l.host.logText())
		}
	}
}

func sum(counts []int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// wantAcked checks that a store holds all acknowledged jobs.
func wantAcked(t *testing.T, s *site, acked []int64) {
	t.Helper()
	db, err := sqlitedb.Open(sqlitedb.Options{
		Dir: filepath.Dir(s.database()), Schemas: append(sqlitequeue.Schemas(), sqlitestate.Schemas()...),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Read(t.Context(), func(r *sqlitedb.Reader) error {
		for producer, want := range acked {
			st := r.Stmt("SELECT count(*) FROM job WHERE id>=? AND id<?").Text(streamID(producer, 0)).Text(streamID(producer, want))
			if st.Step() && st.ColInt(0) != want {
				t.Errorf("%d jobs of producer %d were acknowledged, and %d of them are there", want, producer, st.ColInt(0))
			}
			if err := st.Done(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// drill runs a restored store, and removes as many large jobs as it can.
func drill(t *testing.T, s *site) {
	t.Helper()
	host := s.start()
	wantLarge(t, host, "large0", "large1")
	if err := host.Delete(t.Context(), "large0"); err != nil {
		t.Error(err)
	}
	awaitMetric(t, s, host, listed, 1)
	if code := host.stop(); code != 0 {
		t.Errorf("a drill ends with code %d:\n%s", code, host.logText())
	}
}
