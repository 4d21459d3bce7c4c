package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// marked is the module of guests.Outcomes with a custom section of that name:
// it does the same but has another digest.
func marked(name string) []byte {
	section := append([]byte{byte(len(name))}, name...)
	return append(slices.Clone(guests.Outcomes), append([]byte{0, byte(len(section))}, section...)...)
}

// put replaces a file atomically, as careful tools do.
func (s *site) put(name string, data []byte) {
	s.t.Helper()
	s.write(name+".next", data)
	if err := os.Rename(filepath.Join(s.dir, name+".next"), filepath.Join(s.dir, name)); err != nil {
		s.t.Fatal(err)
	}
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// awaitLines returns when that many lines of the log contain the text.
func (p *process) awaitLines(n int, text string) {
	p.t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for strings.Count(p.logText(), text) < n {
		select {
		case <-tick.C:
		case <-p.read:
			p.t.Fatalf("the host ended:\n%s", p.logText())
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the log has no %d lines with %q:\n%s", n, text, p.logText())
		}
	}
}

func (p *process) worker(name string) jobhost.WorkerStatus {
	p.t.Helper()
	workers, err := p.Workers(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for i := range workers {
		if workers[i].Name == name {
			return workers[i]
		}
	}
	p.t.Fatalf("there is no worker %s", name)
	return jobhost.WorkerStatus{}
}

// echo runs a job of the worker echo.
func (p *process) echo(payload string) {
	p.t.Helper()
	job, err := p.SubmitWait(p.t.Context(), jobhost.Spec{Worker: "echo", Payload: []byte(payload), MaxAttempts: 1})
	if err != nil || job.State != jobhost.Succeeded {
		p.t.Errorf("job %s is %v, %v: %+v", payload, job.State, err, job.Failures)
	}
}

// Modules are swapped under load, and no job notices.
func TestHangupSwapsUnderLoad(t *testing.T) {
	t.Parallel()
	const producers, each, swaps = 4, 100, 8
	site := newSite(t)
	host := site.start()
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			for i := range each {
				host.echo(fmt.Sprintf("%d-%d", p, i))
			}
		})
	}
	digests := map[string]bool{host.worker("echo").SHA256: true}
	for i := range swaps {
		site.put("outcomes.wasm", marked(fmt.Sprintf("version %d", i)))
		host.signal(syscall.SIGHUP)
		host.awaitLines(i+1, `msg=reloaded changed=2 count=2`)
		digests[host.worker("echo").SHA256] = true
	}
	group.Wait()
	w := host.worker("echo")
	if w.Version != swaps+1 || len(digests) != swaps+1 || w.Tasks["succeeded"] != producers*each || w.Tasks["dead"] != 0 {
		t.Errorf("after %d swaps: version %d, %d digests, tasks %v", swaps, w.Version, len(digests), w.Tasks)
	}
	if code := host.stop(); code != 0 || strings.Contains(host.logText(), "level=ERROR") || strings.Contains(host.logText(), "refused") {
		t.Errorf("exit code %d:\n%s", code, host.logText())
	}
}

// A broken manifest or module changes nothing, and the log says where the fault is.
func TestHangupWithFaults(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	host := site.start()
	good := site.manifest()
	site.put("manifest.toml", []byte(strings.Replace(good, `pool_size = 4`, `pool_size = 5`+"\n"+`tiemout = "1s"`, 1)))
	host.signal(syscall.SIGHUP)
	host.awaitLines(1, "reload refused; what ran runs on")
	if !regexp.MustCompile(`manifest\.toml:\d+:\d+: worker\.echo: tiemout is not a setting`).MatchString(host.logText()) {
		t.Errorf("the log does not say where the fault is:\n%s", host.logText())
	}
	_, err := host.Reload(t.Context(), "")
	if jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), "tiemout is not a setting") || jobhost.HintOf(err) != "did you mean timeout?" {
		t.Errorf("reload over HTTP: %v", err)
	}

	site.put("manifest.toml", []byte(strings.Replace(good, `pool_size = 4`, `pool_size = 5`, 1)))
	site.put("outcomes.wasm", guests.Outcomes[:len(guests.Outcomes)/2])
	host.signal(syscall.SIGHUP)
	host.awaitLines(2, "outcomes.wasm is not a valid WebAssembly module")
	if w := host.worker("echo"); w.Version != 1 || w.Slots != 4 {
		t.Errorf("the worker is %+v", w)
	}
	host.echo("still there")

	// Once the module is repaired the settings take effect; the port can't.
	site.put("outcomes.wasm", guests.Outcomes)
	site.replace(site.addr, "127.0.0.1:1")
	report, err := host.Reload(t.Context(), "")
	if err != nil || !slices.Equal(report.NeedsRestart, []string{"host.listen"}) {
		t.Errorf("reload: %+v, %v", report, err)
	}
	if w := host.worker("echo"); w.Version != 2 || w.Slots != 5 {
		t.Errorf("the worker is %+v", w)
	}
}

// A pinned module is not replaced by another one.
func TestPinRefusesAnotherModule(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	host := site.start()
	pinned := host.worker("echo").SHA256
	site.replace("entry = \"echo\"", fmt.Sprintf("entry = \"echo\"\nsha256 = %q", pinned))
	if _, err := host.Reload(t.Context(), "echo"); err != nil {
		t.Fatal(err)
	}
	site.put("outcomes.wasm", marked("other"))
	_, err := host.Reload(t.Context(), "echo")
	if jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), "the plugin's digest is") {
		t.Errorf("reload: %v", err)
	}
	if w := host.worker("echo"); w.SHA256 != pinned {
		t.Errorf("the worker is %+v", w)
	}
	host.echo("pinned")
}

// The tasks of a removed worker are held and run when it is back.
func TestRemovedWorkerParksItsTasks(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	host := site.start()
	full := site.manifest()
	var busy []string // all slots
	for range 4 {
		receipt, err := host.Submit(t.Context(), jobhost.Spec{Worker: "echo", Entry: "spin"})
		if err != nil {
			t.Fatal(err)
		}
		awaitState(t, host, receipt.ID, jobhost.Running)
		busy = append(busy, receipt.ID)
	}
	job, err := host.Submit(t.Context(), jobhost.Spec{Worker: "echo", Payload: []byte("kept")})
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(full, "[worker.echo]")
	_, after, _ := strings.Cut(rest, "\n\n")
	site.put("manifest.toml", []byte(before+after))
	host.signal(syscall.SIGHUP)
	host.awaitLines(1, `worker removed; its tasks are held`)
	awaitState(t, host, job.ID, jobhost.Held)
	if why, err := host.Why(t.Context(), job.ID); err != nil || why.Code != "no_worker" || !strings.Contains(why.Reason, "is loaded") {
		t.Errorf("why: %+v, %v", why, err)
	}
	if _, err := host.Submit(t.Context(), jobhost.Spec{Worker: "echo"}); jobhost.CodeOf(err) != jobhost.CodeNotFound {
		t.Errorf("a submit to a removed worker: %v", err)
	}
	for _, id := range busy {
		awaitState(t, host, id, jobhost.Running) // what runs may end
		if _, err := host.Cancel(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if code := host.stop(); code != 0 { // held across a restart, too
		t.Fatalf("exit code %d:\n%s", code, host.logText())
	}
	host = site.start()
	awaitState(t, host, job.ID, jobhost.Held)
	site.put("manifest.toml", []byte(full))
	host.signal(syscall.SIGHUP)
	awaitState(t, host, job.ID, jobhost.Succeeded)
}

func TestStatusSignal(t *testing.T) {
	t.Parallel()
	host := newSite(t).start()
	host.signal(syscall.SIGUSR1)
	host.awaitLines(1, `msg="worker status" worker=spin`)
	if !strings.Contains(host.logText(), "msg=status state=running") {
		t.Errorf("the log does not tell the state:\n%s", host.logText())
	}
}

// dev builds, swaps what works, and otherwise says what is wrong.
func TestDev(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	if err := os.Mkdir(filepath.Join(site.dir, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	site.write("src/module", guests.Outcomes)
	site.replace(`[worker.echo]
plugin = "outcomes.wasm"`, `[worker.echo]
plugin = "src/built.wasm"
build = "echo makes $((20 + 3)); cp module built.wasm"`)
	host := site.launch("dev") // the plugin doesn't exist before its build
	host.awaitLog("echo | makes 23")
	host.echo("first")

	site.put("src/module", marked("second"))
	host.awaitLines(1, "worker echo: changed, version 2")
	host.echo("second")

	site.put("src/module", guests.Outcomes[:100])
	host.awaitLog("nothing was swapped: the version before keeps running")
	if !strings.Contains(host.logText(), "built.wasm is not a valid WebAssembly module") {
		t.Errorf("dev does not say what is wrong:\n%s", host.logText())
	}
	host.echo("still second")

	site.replace("cp module built.wasm", "exit 7")
	host.awaitLog("the build of echo failed: exit status 7")
	host.echo("second all the same")

	// The plugin of a worker without build is watched as well; what it logs is shown.
	site.put("outcomes.wasm", marked("third"))
	host.awaitLines(1, "worker spin: changed, version 2")
	if _, err := host.SubmitWait(t.Context(), jobhost.Spec{Worker: "spin", Entry: "log_echo", ID: "talks", Payload: []byte("hello there")}); err != nil {
		t.Fatal(err)
	}
	host.awaitLog("spin talks | info hello there")
	if w := host.worker("echo"); w.Version != 2 {
		t.Errorf("the worker is %+v", w)
	}
	host.signal(syscall.SIGHUP) // its terminal is gone
	if code := host.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, host.logText())
	}
}
