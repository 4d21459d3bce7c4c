package crash_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jobhost/jobhost/host/crash"
	"github.com/jobhost/jobhost/host/journal"
)

// dieIn makes this program open the evidence of a folder and die as dieBy says.
const (
	dieIn = "JOBHOST_TEST_DIE_IN"
	dieBy = "JOBHOST_TEST_DIE_BY"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(dieIn); dir != "" {
		die(dir, os.Getenv(dieBy))
	}
	os.Exit(m.Run())
}

func die(dir, how string) {
	r, j, err := open(dir)
	if err != nil {
		panic(err)
	}
	switch how {
	case "panic":
		panic("a worker said \x1b[31m<stop>\n" + strings.Repeat("x", 5000))
	case "segv":
		var nowhere *int
		*nowhere = 1 //nolint:govet // that is what it is for
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "recovered": // the start after the crash dealt with what was left
		r.Done()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "stop":
		if r.Close() != nil || j.Close() != nil {
			os.Exit(2)
		}
		os.Exit(0)
	}
	os.Exit(3)
}

func open(dir string) (*crash.Recorder, *journal.Journal, error) {
	j, err := journal.Open(filepath.Join(dir, "journal"), func() {})
	if err != nil {
		return nil, nil, err
	}
	r, err := crash.Open(dir, j, slog.New(slog.DiscardHandler))
	return r, j, err
}

// after runs processes that end in those ways, one after the other, and returns what
// the next one finds.
func after(t *testing.T, dir string, ways ...string) *crash.Ended {
	t.Helper()
	for _, how := range ways {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), dieIn+"="+dir, dieBy+"="+how)
		out, err := cmd.CombinedOutput()
		if (err == nil) != (how == "stop") || cmd.ProcessState.ExitCode() == 3 {
			t.Fatalf("%s: %v\n%s", how, err, out)
		}
	}
	r, j, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		_ = j.Close()
	})
	return r.Ended()
}

// The tests below are not parallel: Go writes its last words to one file.

func TestPanic(t *testing.T) {
	dir := t.TempDir()
	ended := after(t, dir, "panic")
	if ended == nil || ended.How != crash.Fatal || !ended.ByItself() || !strings.HasPrefix(ended.Cause, `panic: a worker said \x1b[31m<stop>`) || ended.At.IsZero() {
		t.Fatalf("%+v", ended)
	}
	if len(ended.Cause) > 1000 || strings.Contains(ended.Cause, "goroutine") {
		t.Errorf("cause: %s", ended.Cause)
	}
	text, err := os.ReadFile(filepath.Join(dir, ended.File))
	if err != nil || !strings.Contains(string(text), "crash_test.die") {
		t.Errorf("%v: %s", err, text)
	}
	info, err := os.Stat(filepath.Join(dir, ended.File))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestSignalOfTheProcessor(t *testing.T) {
	ended := after(t, t.TempDir(), "segv")
	if ended == nil || ended.How != crash.Fatal || !strings.Contains(ended.Cause, "nil pointer dereference") {
		t.Fatalf("%+v", ended)
	}
}

func TestKill(t *testing.T) {
	ended := after(t, t.TempDir(), "kill")
	if ended == nil || ended.How != crash.Killed || ended.ByItself() || !strings.Contains(ended.Cause, "from outside") || ended.File != "" {
		t.Fatalf("%+v", ended)
	}
}

func TestStop(t *testing.T) {
	if ended := after(t, t.TempDir(), "stop"); ended != nil || ended.ByItself() {
		t.Fatalf("%+v", ended)
	}
}

// A start that is killed before it dealt with what a crash has left doesn't take the
// place of that crash; one that is killed later does.
func TestCrashOfTheNextStart(t *testing.T) {
	dir := t.TempDir()
	if ended := after(t, dir, "panic", "kill", "stop"); ended == nil || ended.How != crash.Fatal || ended.File == "" {
		t.Fatalf("%+v", ended)
	}
	if ended := after(t, t.TempDir(), "panic", "recovered"); ended == nil || ended.How != crash.Killed {
		t.Fatalf("%+v", ended)
	}
	if ended := after(t, t.TempDir(), "panic", "recovered", "stop", "stop"); ended == nil || ended.How != crash.Killed {
		t.Fatalf("what a start found that was stopped before it dealt with it is gone: %+v", ended)
	}
}

func TestFewFilesAreKept(t *testing.T) {
	dir := t.TempDir()
	ended := after(t, dir, "panic", "panic", "panic", "panic", "panic", "panic", "panic")
	entries, err := os.ReadDir(filepath.Join(dir, crash.Folder))
	if err != nil || len(entries) != 7 { // with the one that is being written, and that of the crash that was not dealt with
		t.Fatalf("%v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(dir, ended.File)); err != nil {
		t.Error(err)
	}
}
