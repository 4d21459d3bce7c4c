package test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/jobhost/jobhost"
)

// A clean stop puts a task that doesn't end back into the queue, without
// counting the attempt.
func TestStopReturnsRunningTasks(t *testing.T) {
	t.Parallel()
	site := newSite(t)
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

// The second host on a folder ends and says who holds it.
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
