package test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// bucket is an S3 server that can be made to answer 500.
type bucket struct {
	*httptest.Server
	away atomic.Bool
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("jobs"); err != nil {
		t.Fatal(err)
	}
	b, s3 := &bucket{}, gofakes3.New(backend).Server()
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.away.Load() {
			http.Error(w, "away", http.StatusInternalServerError)
			return
		}
		s3.ServeHTTP(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

// newBucketSite returns a site whose large payloads are in a bucket. Its worker cat
// copies payloads, and big returns as many bytes as requested.
func newBucketSite(t *testing.T, b *bucket) *site {
	t.Helper()
	t.Setenv("TEST_S3_KEY", "key")
	s := newSite(t)
	s.write("cat.wasm", guests.Cat)
	s.write("command.wasm", guests.Command)
	s.write("manifest.toml", []byte(s.manifest()+fmt.Sprintf(`
[worker.cat]
plugin = "cat.wasm"
pool_size = 4

[worker.big]
plugin = "command.wasm"
abi = "wasi"
pool_size = 2

[[payload.store]]
name = "bucket"
kind = "s3"
endpoint = %q
region = "us-east-1"
bucket = "jobs"
access_key = { env = "TEST_S3_KEY" }
secret_key = { env = "TEST_S3_KEY" }
`, b.URL)))
	return s
}

// latencies are how long small jobs took, from submit to result.
type latencies struct {
	mu   sync.Mutex // protects took
	took []time.Duration
}

// cut returns the 99th percentile of the latencies since the last cut, and their number.
func (l *latencies) cut() (p99 time.Duration, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := l.took
	l.took = nil
	if len(took) == 0 {
		return 0, 0
	}
	slices.Sort(took)
	return took[len(took)*99/100], len(took)
}

// submitSmall runs small jobs of a worker, one after the other with short breaks, until ctx ends.
func submitSmall(ctx context.Context, t *testing.T, host *process, worker string, l *latencies) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		<-tick.C
		began := time.Now()
		receipt, err := host.Submit(t.Context(), jobhost.Spec{ID: fmt.Sprintf("small-%s-%d", worker, i), Worker: worker, Payload: []byte("x")})
		if err != nil {
			t.Errorf("a small job is refused: %v", err)
			return
		}
		job, err := host.Wait(t.Context(), receipt.ID)
		if err != nil || job.State != jobhost.Succeeded {
			t.Errorf("a small job: %+v, %v", job, err)
			return
		}
		l.mu.Lock()
		l.took = append(l.took, time.Since(began))
		l.mu.Unlock()
	}
}

// A payload store that answers 500 costs no attempt and holds no small job: large tasks
// wait until it is back, and results returned during the outage are stored then,
// without running anything again.
func TestPayloadStoreAnswers500(t *testing.T) {
	outage := 3 * time.Second
	if os.Getenv("JOBHOST_CHAOS") != "" {
		outage = time.Minute
	}
	b := newBucket(t)
	s := newBucketSite(t, b)
	host := s.start()
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var same, other latencies
	load.Go(func() { submitSmall(ctx, t, host, "cat", &same) })
	load.Go(func() { submitSmall(ctx, t, host, "echo", &other) })
	defer load.Wait()
	defer cancel()
	large := bytes.Repeat([]byte("0123456789"), 10_000)
	var ids []string
	submit := func(spec jobhost.Spec) {
		t.Helper()
		spec.ID = fmt.Sprintf("large-%d", len(ids))
		if _, err := host.Submit(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, spec.ID)
	}
	for i := range 60 { // due from now until after the outage
		submit(jobhost.Spec{Worker: "cat", Payload: large, Delay: time.Duration(i) * outage / 40})
	}
	<-time.After(outage / 5)
	same99, n := same.cut()
	other99, m := other.cut()
	t.Logf("before: p99 of %d small jobs of the same worker %v, of %d of another %v", n, same99, m, other99)

	b.away.Store(true)
	began := time.Now()
	for range 20 { // small payloads, large results
		submit(jobhost.Spec{Worker: "big", Payload: []byte("big_output\n100000")})
	}
	<-time.After(outage - time.Since(began))
	awaySame, n := same.cut()
	awayOther, m := other.cut()
	why, err := host.Why(t.Context(), ids[60])
	b.away.Store(false)
	t.Logf("away for %v: p99 of %d small jobs of the same worker %v, of %d of another %v", time.Since(began), n, awaySame, m, awayOther)
	if limit := 3*max(same99, other99) + 250*time.Millisecond; awaySame > limit || awayOther > limit || n == 0 || m == 0 {
		t.Errorf("small jobs notice the outage")
	}
	if err != nil || why.Code != "result_waits" {
		t.Errorf("why: %+v, %v", why, err)
	}
	checkLargeJobs(t, host, ids, large)
}

// checkLargeJobs waits for jobs, none of which may have failed, or run again after it
// had its result.
func checkLargeJobs(t *testing.T, host *process, ids []string, copied []byte) {
	t.Helper()
	failed := 0
	for _, id := range ids {
		job, err := host.Wait(t.Context(), id)
		if err != nil || job.State != jobhost.Succeeded || len(job.Failures) > 0 || job.Tasks[0].Attempt != 1 {
			failed++
			t.Logf("job %s: %+v, %v", id, job, err)
			continue
		}
		if job.Worker == "big" && job.Tasks[0].Course != 2 {
			t.Errorf("job %s ran again: course %d", id, job.Tasks[0].Course)
		}
		content, err := host.OpenResult(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(content)
		content.Close()
		if err != nil || len(got) != len(copied) || job.Worker == "cat" && !bytes.Equal(got, copied) {
			t.Errorf("job %s has a result of %d bytes, %v", id, len(got), err)
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d large jobs met the outage", failed, len(ids))
	}
}
