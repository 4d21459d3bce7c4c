package test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// kills is how often the host is killed.
func kills() int { return often(4, 100) }

// often is how often something is done: a few times in a normal run of the tests,
// JOBHOST_CHAOS=1 (make chaos) asks for more.
func often(few, many int) int {
	if os.Getenv("JOBHOST_CHAOS") != "" {
		return many
	}
	return few
}

// loaded is the longest that a host is under load, beyond the first tenth of a second. All jobs
// that it accepts then are checked in the end, which takes longer.
func loaded() time.Duration {
	if os.Getenv("JOBHOST_CHAOS") != "" {
		return 700 * time.Millisecond
	}
	return 150 * time.Millisecond
}

// A host is killed at random moments under load and restarted. An outside ledger
// records what was acknowledged and which results were seen: none of it may be
// missing in the end, and nothing may have run again that a crash does not
// explain. Every other time another program opens the store in between.
func TestKillUnderLoad(t *testing.T) {
	t.Parallel()
	site, book := newSite(t), newLedger()
	n := kills()
	for process := range n {
		host := site.start()
		ctx, cancel := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for producer := range 8 {
			load.Go(func() { submitUntil(ctx, host, book, fmt.Sprintf("k%d-p%d", process, producer)) })
		}
		load.Go(func() { lookUntil(ctx, host, book, process) })
		<-time.After(100*time.Millisecond + rand.N(loaded()))
		host.kill()
		cancel()
		load.Wait()
		t.Logf("process %d was killed with %d leases open", process, book.ran(t, process, host))
		if process%2 == 1 {
			lookInto(t, site, process)
		}
	}
	host := site.start()
	checkResults(t, host, book)
	if code := host.stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM:\n%s", code, host.logText())
	}
	if open := book.ran(t, n, host); open != 0 {
		t.Errorf("%d leases were open at the end of a host that was stopped", open)
	}
	book.checkRuns(t)
}

// lookInto uses the sqlite3 shell on the store of a killed host, in one of the ways in which people do. Being
// the last one to have it open, the shell moves the log into the database.
func lookInto(t *testing.T, site *site, process int) {
	t.Helper()
	looks := []string{"SELECT count(*) FROM job", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA integrity_check", "PRAGMA wal_checkpoint(PASSIVE)", ".schema"}
	out, err := exec.Command("sqlite3", filepath.Join(site.dir, "data", "jobhost.db"), looks[process/2%len(looks)]).CombinedOutput() //nolint:gosec // as people do
	if err != nil {
		t.Fatalf("sqlite3: %v\n%s", err, out)
	}
}

// submitUntil submits jobs, one by one and in batches, until the host is gone.
func submitUntil(ctx context.Context, host *process, book *ledger, prefix string) {
	for i := 0; ; i++ {
		specs := make([]jobhost.Spec, 1+rand.N(20))
		for k := range specs {
			id := fmt.Sprintf("%s-%d-%d", prefix, i, k)
			specs[k] = jobhost.Spec{ID: id, Worker: "echo", Payload: []byte(id)}
		}
		if len(specs) == 1 {
			receipt, err := host.Submit(ctx, specs[0])
			if err != nil {
				return
			}
			book.ack(receipt.ID)
			continue
		}
		answers, err := host.SubmitBatch(ctx, specs)
		if err != nil {
			return
		}
		for _, a := range answers {
			if a.Err == nil {
				book.ack(a.Receipt.ID)
			}
		}
	}
}

// lookUntil reads results until the host is gone.
func lookUntil(ctx context.Context, host *process, book *ledger, process int) {
	for ctx.Err() == nil {
		for _, id := range book.unseen(50) {
			result, err := host.Result(ctx, id, 0)
			if err == nil && string(result.Data) == id {
				book.see(id, process)
			} else if jobhost.CodeOf(err) == jobhost.CodeUnavailable {
				return
			}
		}
	}
}

// maxRead is how many results are read in the end. Each is a request, and JOBHOST_CHAOS=1 leaves hundreds of thousands.
const maxRead = 10_000

// checkResults checks that every acknowledged job ends well, and that its result is there:
// of all results, or of so many as can be read in time.
func checkResults(t *testing.T, host *process, book *ledger) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if len(book.acked) == 0 {
		t.Fatal("no job was acknowledged")
	}
	awaitSuccess(ctx, t, host, maps.Clone(book.acked))
	read := 0
	for id := range book.acked { // in random order
		if read++; read > maxRead {
			t.Logf("%d of %d results were read", maxRead, len(book.acked))
			return
		}
		result, err := host.Result(ctx, id, 0)
		if err != nil || string(result.Data) != id {
			t.Errorf("job %s has the result %q, %v", id, result.Data, err)
		}
	}
}

// awaitSuccess waits until jobs have succeeded, and removes them from left. It finds them by lists, since to ask for each
// takes minutes where there are many, and then waits for some of the others: most of the rest will have ended by then.
func awaitSuccess(ctx context.Context, t *testing.T, host *process, left map[string]bool) {
	t.Helper()
	for {
		removeSucceeded(ctx, t, host, left)
		if len(left) == 0 {
			return
		}
		waits := jobhost.MaxPage
		for id := range left {
			job, err := host.Wait(ctx, id)
			if err != nil || job.State != jobhost.Succeeded {
				t.Errorf("acknowledged job %s is %v at the end, %v", id, job.State, err)
			}
			delete(left, id)
			if waits--; waits == 0 || ctx.Err() != nil {
				break
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("%d acknowledged jobs have not ended: %v", len(left), ctx.Err())
		}
	}
}

// removeSucceeded removes the jobs that have succeeded by now.
func removeSucceeded(ctx context.Context, t *testing.T, host *process, left map[string]bool) {
	t.Helper()
	for f := (jobhost.Filter{State: jobhost.Succeeded, Limit: jobhost.MaxPage}); ; {
		page, err := host.Jobs(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Jobs {
			if page.Jobs[i].State == jobhost.Succeeded {
				delete(left, page.Jobs[i].ID)
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return
		}
	}
}
