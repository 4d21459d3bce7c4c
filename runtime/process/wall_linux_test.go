package process_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/process"
	"github.com/jobhost/jobhost/runtime/process/confine"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// walled is an engine with a log that contains the pids of its processes.
type walled struct {
	*process.Sandboxes
	log *logText
}

func newWalled(t *testing.T, cfg process.SandboxConfig) walled {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := walled{log: &logText{}}
	cfg.Command, cfg.Logger = []string{exe, "sandbox"}, slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if w.Sandboxes, err = process.NewSandboxes(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w walled) load(t *testing.T, src runtime.Source) runtime.Plugin {
	t.Helper()
	p, err := w.Load(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// pid returns the number of the process that was started last.
func (w walled) pid(t *testing.T) int {
	t.Helper()
	text := w.log.String()
	_, after, _ := strings.Cut(text[strings.LastIndex(text, "sandbox process\""):], "pid=")
	number, _, _ := strings.Cut(after, " ")
	pid, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return pid
}

// logText keeps the log.
type logText struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// needWall skips a test if the kernel lacks what it tests.
func needWall(t *testing.T) {
	t.Helper()
	if r := confine.Available(); len(r.Missing) > 0 {
		t.Skip("this system lacks ", strings.Join(r.Missing, ", "))
	}
}

func TestWall(t *testing.T) {
	needWall(t)
	const canary = "canary-4711"
	t.Setenv("JOBHOST_TEST_SECRET", canary)
	w := newWalled(t, process.SandboxConfig{})
	p := w.load(t, runtime.Source{Worker: "echo", Bytes: guests.Echo})
	if r := runtimetest.Instance(t, p).Run(t.Context(), runtimetest.Attempt("", "hello")); string(r.Outcome.Output) != "hello" {
		t.Fatalf("%+v", r.Outcome)
	}
	proc := fmt.Sprintf("/proc/%d/", w.pid(t))

	statuses, err := filepath.Glob(proc + "task/*/status")
	if err != nil || len(statuses) < 3 {
		t.Fatal(len(statuses), "threads:", err)
	}
	for _, path := range statuses {
		status := readFile(t, path)
		// Root keeps one capability where Landlock guards files: opening those of others.
		for _, want := range []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n", "CapInh:\t0000000000000000\n", "CapPrm:\t000000000000000"} {
			if !strings.Contains(status, want) {
				t.Errorf("no %q in\n%s", want, status)
			}
		}
	}

	limits := readFile(t, proc+"limits")
	for name, want := range map[string]string{
		"Max core file size": "0",
		"Max cpu time":       "unlimited", // once the plugin is loaded
		"Max file size":      strconv.Itoa(1 << 30),
		"Max open files":     strconv.Itoa(512 + 64), // of one slot
	} {
		if got := fieldAfter(limits, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := strings.TrimSpace(readFile(t, proc+"oom_score_adj")); got != "1000" {
		t.Errorf("when memory runs out its score is %s, want that of what ends first", got)
	}

	// It isn't dumpable, so only root can look at this.
	if environment, err := os.ReadFile(proc + "environ"); err == nil {
		if bytes.Contains(environment, []byte(canary)) || !bytes.Contains(environment, []byte("GOGC=400")) {
			t.Errorf("its environment is %q", environment)
		}
	} else if os.Getuid() == 0 {
		t.Error(err)
	}
	if os.Getuid() == 0 && !hasOpen(t, proc, "/pagemap") {
		t.Error("it can't reset memory in the fastest way: it has no page map")
	}
}

func fieldAfter(text, name string) string {
	_, after, _ := strings.Cut(text, name)
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func hasOpen(t *testing.T, proc, suffix string) bool {
	t.Helper()
	descriptors, err := filepath.Glob(proc + "fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range descriptors {
		if target, _ := os.Readlink(d); strings.HasSuffix(target, suffix) {
			return true
		}
	}
	return false
}

// TestWalledFiles: what a guest may do with its mounts also works behind the wall.
func TestWalledFiles(t *testing.T) {
	t.Parallel()
	w := newWalled(t, process.SandboxConfig{})
	for _, write := range []bool{true, false} {
		dir := t.TempDir()
		p := w.load(t, runtime.Source{Worker: "files", Bytes: guests.LibC, System: runtime.System{
			Mounts: []runtime.Mount{{Host: dir, Guest: "/data", Write: write}},
		}})
		r := runtimetest.Instance(t, p).Run(t.Context(), runtimetest.Attempt("", "files"))
		if got := r.Outcome.Kind == jobhost.OutcomeSucceeded; got != write {
			t.Errorf("write %v: %v %+v", write, r.Outcome, r.Outcome.Failure)
		}
		if entries, _ := os.ReadDir(dir); (len(entries) > 0) != write {
			t.Errorf("write %v: it left %v", write, entries)
		}
	}
}

func TestWalledCache(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "compiled")
	w := newWalled(t, process.SandboxConfig{CacheDir: dir})
	for _, src := range []runtime.Source{
		{Worker: "a", Bytes: guests.Echo},
		{Worker: "a", Bytes: guests.Echo, Limits: runtime.Limits{MemoryBytes: 1 << 20}},
		{Worker: "a", Bytes: guests.Noop},
		{Worker: "b", Bytes: guests.Echo},
	} {
		w.load(t, src)
	}
	folders, err := os.ReadDir(dir)
	if err != nil || len(folders) != 3 {
		t.Fatalf("%v, %v: want three folders, one of each worker and module", folders, err)
	}
	keys := map[string]string{}
	for _, f := range folders {
		// What one process can seal, another one doesn't trust.
		key := readFile(t, filepath.Join(dir, f.Name(), "key"))
		if len(key) != 32 || keys[key] != "" {
			t.Errorf("the key of %s has %d bytes and is that of %q", f.Name(), len(key), keys[key])
		}
		keys[key] = f.Name()
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("the mode of %s is %v", f.Name(), info.Mode())
		}
		modules, err := filepath.Glob(filepath.Join(dir, f.Name(), "*", "*"))
		if err != nil || len(modules) == 0 {
			t.Errorf("nothing is kept in %s: %v", f.Name(), err)
		}
	}
}

// TestCompileBomb: a module that takes long to compile costs a process, not the host.
func TestCompileBomb(t *testing.T) {
	t.Parallel()
	needWall(t)
	// A fifth of what a processor of 2026 takes, without the race detector.
	w := newWalled(t, process.SandboxConfig{CompileTime: 2 * time.Second})
	began := time.Now()
	patient := runtime.Limits{StartTime: 5 * time.Minute} // on a busy machine two seconds of a processor take long
	_, err := w.Load(t.Context(), runtime.Source{Worker: "bomb", Bytes: bomb(20 << 20), Limits: patient})
	if jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(fmt.Sprint(err), "has ended") || jobhost.HintOf(err) == "" {
		t.Fatalf("%v after %v", err, time.Since(began))
	}
	if !strings.Contains(fmt.Sprint(err), "CPU time limit exceeded") {
		t.Error("it doesn't say why:", err)
	}
	p := w.load(t, runtime.Source{Worker: "echo", Bytes: guests.Echo})
	if r := runtimetest.Instance(t, p).Run(t.Context(), runtimetest.Attempt("", "hello")); string(r.Outcome.Output) != "hello" {
		t.Fatalf("%+v", r.Outcome)
	}
}

// bomb returns a module like noop with that many more bytes of code, which takes long to compile: each access
// to memory is a check, a load and an exit.
func bomb(size int) []byte {
	const statements = 2000
	var body []byte
	for range statements { // local 0 = what is in memory there
		body = append(body, 0x20, 0, 0x28, 2, 0, 0x21, 0)
	}
	body = append(append([]byte{0}, body...), 0x42, 0, 0x0b) // and 0 is returned
	functions := size / len(body)
	section := func(id byte, content []byte) []byte {
		return append(append([]byte{id}, leb(len(content))...), content...)
	}
	types := []byte{1, 0x60, 1, 0x7f, 1, 0x7e}
	var indices, code []byte
	for range functions {
		indices = append(indices, 0)
		code = append(append(code, leb(len(body))...), body...)
	}
	exports := []byte{2, 6, 'm', 'e', 'm', 'o', 'r', 'y', 2, 0, 6, 'j', 'h', '_', 'r', 'u', 'n', 0, 0}
	return bytes.Join([][]byte{
		{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, types), section(3, append(leb(functions), indices...)), section(5, []byte{1, 0, 1}),
		section(7, exports), section(10, append(leb(functions), code...)),
	}, nil)
}

// leb encodes a number as modules do.
func leb(n int) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}
