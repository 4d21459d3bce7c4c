package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/journal"
)

// newCrashSite is a site with an additional worker whose tasks have a number of attempts.
func newCrashSite(t *testing.T, attempts int) *site {
	t.Helper()
	s := newSite(t)
	s.replace("[worker.spin]", fmt.Sprintf("[worker.evil]\nplugin = \"outcomes.wasm\"\nentry = \"echo\"\npool_size = 2\n[worker.evil.retry]\nmax_attempts = %d\n\n[worker.spin]", attempts))
	return s
}

// dying makes it a site of a host that attempts with the payload "die" kill.
func (s *site) dying() *site {
	s.program = []string{os.Args[0], dyingHost}
	return s
}

// submit submits a job, and returns its id.
func (p *process) submit(spec jobhost.Spec) string {
	p.t.Helper()
	receipt, err := p.Submit(p.t.Context(), spec)
	if err != nil {
		p.t.Fatal(err)
	}
	return receipt.ID
}

// die submits a job that kills the host, and waits for that.
func (p *process) die(id string) {
	p.t.Helper()
	_, _ = p.Submit(p.t.Context(), jobhost.Spec{ID: id, Worker: "evil", Payload: []byte("die")})
	select {
	case <-p.read:
		_ = p.cmd.Wait()
	case <-time.After(time.Minute):
		p.t.Fatalf("the host lives:\n%s", p.logText())
	}
	if !strings.Contains(p.logText(), "fatal error: stack overflow") {
		p.t.Fatalf("the host ended otherwise:\n%s", p.logText())
	}
}

// serves checks that a job of another worker is soon done.
func (p *process) serves() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	id := p.submit(jobhost.Spec{Worker: "echo", Payload: []byte("hello")})
	if job, err := p.Wait(ctx, id); err != nil || job.State != jobhost.Succeeded {
		p.t.Fatalf("%+v, %v\n%s", job, err, p.logText())
	}
}

func (p *process) job(id string) jobhost.Job {
	p.t.Helper()
	job, err := p.Job(p.t.Context(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	return job
}

// A job that ends the host does so once. Then it ends a process of its own, is a dead
// letter with the evidence, and its worker is held; the starts that follow are as any others.
func TestJobThatEndsTheHost(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t, 2).dying()
	s.start().die("evil")
	var waiting string
	for start := range often(6, 20) {
		p := s.start()
		p.serves()
		if start == 0 {
			job := awaitState(t, p, "evil", jobhost.Dead)
			if f := job.Failures; len(f) != 2 || f[0].Code != jobhost.FailHostCrash || f[1].Code != jobhost.FailHostCrash ||
				!strings.Contains(f[0].Context, "stack overflow") || strings.Contains(f[0].Message, "stack overflow") {
				t.Errorf("failures: %+v", f)
			}
			waiting = p.submit(jobhost.Spec{Worker: "evil", Payload: []byte("die")})
		}
		job := awaitState(t, p, waiting, jobhost.Held)
		why, err := p.Why(t.Context(), waiting)
		if err != nil || why.Code != "disabled" || !strings.Contains(why.Reason, "ended the host") || !strings.Contains(why.Ends, "worker resume evil") {
			t.Errorf("start %d: %+v, %+v, %v", start, job, why, err)
		}
		if disabled := p.worker("evil").Disabled; !strings.Contains(disabled, "2 times") {
			t.Errorf("start %d: %q", start, disabled)
		}
		if start%2 == 0 {
			p.kill()
		} else if code := p.stop(); code != 0 {
			t.Errorf("start %d ended with %d:\n%s", start, code, p.logText())
		}
	}
	kept, err := filepath.Glob(filepath.Join(s.dir, "data", "crashes", "2*.txt"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v, %v", kept, err)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || !strings.Contains(string(text), "test.deeper") {
		t.Errorf("%v: %s", err, text)
	}
}

// With one attempt it is a dead letter at the next start. Each such job costs one crash,
// and the second one holds the worker.
func TestJobWithOneAttemptThatEndsTheHost(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t, 1).dying()
	s.start().die("first")
	p := s.start()
	if job := p.job("first"); job.State != jobhost.Dead || len(job.Failures) != 1 || job.Failures[0].Code != jobhost.FailHostCrash {
		t.Errorf("%+v", job)
	}
	p.serves()
	p.die("second")
	p = s.start()
	if job := p.job("second"); job.State != jobhost.Dead {
		t.Errorf("%+v", job)
	}
	held := p.submit(jobhost.Spec{Worker: "evil"})
	awaitState(t, p, held, jobhost.Held)
	p.serves()
	if _, err := p.ResumeWorker(t.Context(), "evil"); err != nil {
		t.Fatal(err)
	}
	awaitState(t, p, held, jobhost.Succeeded)
}

// A job that is running when the host is killed has made an attempt, and finishes in the
// next one. Its worker is not held for that.
func TestKillOfInnocents(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t, 50)
	s.replace("[worker.spin]\nplugin = \"outcomes.wasm\"\nentry = \"spin\"", "[worker.spin]\nplugin = \"outcomes.wasm\"\nentry = \"spin\"\ntimeout = \"20s\"")
	p := s.start()
	long := p.submit(jobhost.Spec{Worker: "spin", MaxAttempts: 50})
	awaitState(t, p, long, jobhost.Running)
	for kills := 1; kills <= 3; kills++ {
		p.kill()
		p = s.start()
		p.awaitLog("process apart")
		awaitState(t, p, long, jobhost.Running)
		job := p.job(long)
		if job.Tasks[0].Attempt > kills+1 || len(job.Failures) < 1 || len(job.Failures) > kills || !strings.Contains(job.Failures[0].Message, "killed") {
			t.Fatalf("after %d kills: %+v", kills, job)
		}
		p.serves()
	}
	if disabled := p.worker("spin").Disabled; disabled != "" {
		t.Errorf("the worker is held: %s", disabled)
	}
	if _, err := p.Cancel(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	awaitState(t, p, long, jobhost.Cancelled)
}

// The host dies once more after it has settled what was in progress, but before it has
// recorded that: what is durable doesn't count twice.
func TestCrashDuringRecovery(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t, 50)
	p := s.start()
	id := p.submit(jobhost.Spec{Worker: "spin", MaxAttempts: 50})
	awaitState(t, p, id, jobhost.Running)
	p.kill()
	path := filepath.Join(s.dir, "data", journal.FileName)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		p = s.start()
		if n := len(p.job(id).Failures); n != 1 {
			t.Fatalf("%d failures:\n%s", n, p.logText())
		}
		p.kill()
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Modules for which the host needs more memory than it may have kill it, with the
// shipped program. That happens once.
func TestModuleThatUsesUpTheMemory(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t, 3)
	s.replace("entry = \"echo\"\npool_size = 2\n[worker.evil", "entry = \"big_output\"\npool_size = 32\nmemory = \"1MiB\"\noutput = \"16MiB\"\n[worker.evil")
	s.replace("[worker.echo]", "[payload]\nthreshold = \"16MiB\"\n\n[worker.echo]")
	p := s.start()
	p.serves()
	p.limitMemory(200 << 20) // enough for the sandboxes
	var specs []jobhost.Spec
	for i := range 32 {
		specs = append(specs, jobhost.Spec{ID: fmt.Sprint("evil-", i), Worker: "evil", Payload: []byte("16000000")})
	}
	_, _ = p.SubmitBatch(t.Context(), specs)
	select {
	case <-p.read:
	case <-time.After(time.Minute):
		t.Fatalf("the host lives:\n%s", p.logText())
	}
	crashed := 0
	for range 3 {
		p = s.start()
		p.serves()
		crashed = 0
		for _, spec := range specs {
			job, err := p.Job(t.Context(), spec.ID)
			if err == nil && len(job.Failures) > 0 && job.Failures[0].Code == jobhost.FailHostCrash && strings.Contains(job.Failures[0].Context, "fatal_error") {
				crashed++
			}
		}
		if crashed == 0 {
			t.Fatalf("no job has a record of the crash:\n%s", p.logText())
		}
		if code := p.stop(); code != 0 {
			t.Fatalf("exit code %d:\n%s", code, p.logText())
		}
	}
	t.Logf("%d attempts were under way", crashed)
}

// limitMemory lets the host use only that much address space in addition to what it has.
func (p *process) limitMemory(more uint64) {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%s/statm", p.pid()))
	if err != nil {
		p.t.Fatal(err)
	}
	var pages uint64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		p.t.Fatal(err)
	}
	var limit unix.Rlimit
	err = unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_AS, nil, &limit)
	limit.Cur = pages*uint64(os.Getpagesize()) + more
	if err := errors.Join(err, unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_AS, &limit, nil)); err != nil {
		p.t.Fatal(err)
	}
}
