package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// A clean stop returns a task that doesn't end to the queue, without counting
// the attempt.
func TestStopReturnsRunningTasks(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	site.replace(`shutdown_timeout = "5s"`, `shutdown_timeout = "1s"`) // it spins all that time
	host := site.start()
	receipt, err := host.Submit(t.Context(), jobhost.Spec{Worker: "spin"})
	if err != nil {
		t.Fatal(err)
	}
	awaitState(t, host, receipt.ID, jobhost.Running)
	if code := host.stop(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, host.logText())
	}

	host = site.start()
	job := awaitState(t, host, receipt.ID, jobhost.Running)
	if job.Tasks[0].Attempt != 1 {
		t.Errorf("the task is at attempt %d after a clean stop, want 1", job.Tasks[0].Attempt)
	}
	if job, err := host.Cancel(t.Context(), receipt.ID); err != nil || job.State != jobhost.Cancelled {
		t.Errorf("cancelled job is %v, %v", job.State, err)
	}
	if code := host.stop(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, host.logText())
	}
}

// A host is stopped at random moments under load and restarted: everything that
// it acknowledged is done in the end, nothing ran twice, and it reports this
// with exit code 0 and no lease left open.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	site, book := newSite(t), newLedger()
	n := stops()
	for process := range n + 1 {
		host := site.start()
		if process == n {
			checkResults(t, host, book)
		} else {
			ctx, cancel := context.WithCancel(t.Context())
			var load sync.WaitGroup
			for producer := range 8 {
				load.Go(func() { submitUntil(ctx, host, book, fmt.Sprintf("s%d-p%d", process, producer)) })
			}
			load.Go(func() { lookUntil(ctx, host, book, process) })
			<-time.After(50*time.Millisecond + rand.N(min(loaded(), 300*time.Millisecond)))
			t.Cleanup(load.Wait) // the producers end with their host
			t.Cleanup(cancel)
		}
		if code := host.stop(); code != 0 {
			t.Errorf("process %d: exit code %d after SIGTERM:\n%s", process, code, host.logText())
		}
		if open := book.ran(t, process, host); open != 0 {
			t.Errorf("process %d left %d leases open", process, open)
		}
	}
	book.checkRuns(t)
}

// stops is how often a host under load is stopped.
func stops() int {
	if os.Getenv("JOBHOST_CHAOS") != "" {
		return 25
	}
	return 3
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	host := newSite(t).start()
	receipt, err := host.Submit(t.Context(), jobhost.Spec{Worker: "spin"})
	if err != nil {
		t.Fatal(err)
	}
	awaitState(t, host, receipt.ID, jobhost.Running)
	for range 2 {
		if err := host.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		host.awaitLog("signal")
	}
	if code := host.wait(); code != 1 {
		t.Errorf("exit code %d, want 1:\n%s", code, host.logText())
	}
}

// The second host on a folder ends and says which one holds it.
func TestSecondHostNamesTheFirst(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	first := site.start()
	second := *site
	second.addr = freeAddr(t)
	manifest := strings.ReplaceAll(site.manifest(), site.addr, second.addr)
	second.write("manifest.toml", []byte(manifest))
	text, code := second.runToEnd()
	if code != 1 || !strings.Contains(text, first.pid()) {
		t.Errorf("exit code %d, and the error does not name process %s:\n%s", code, first.pid(), text)
	}
}
