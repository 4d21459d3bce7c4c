package confine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jobhost/jobhost/runtime/process/confine"
)

// TestMain makes the test's own binary the confined process: what Apply takes away is gone for good.
func TestMain(m *testing.M) {
	if name := os.Getenv("CONFINE_TRY"); name != "" {
		os.Exit(child(name))
	}
	os.Exit(m.Run())
}

// order says what a child should do.
type order struct {
	Config confine.Config
	Allowed, ReadOnly,
	Outside string // folders
	Port   int // of this machine, with a listener
	Parent int

	MoreData, MoreSpace int64 // allowed in addition to what it has

	cloneFlags uintptr // to start it with
}

// answer is the result of a child.
type answer struct {
	Report confine.Report
	Errno  syscall.Errno // 0 = it succeeded
	Error  string
	Said   string
}

// child confines itself, tries something and reports the result.
func child(name string) int {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	t, ok := tries[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "there is no try", name)
		return 1
	}
	if t.before != nil {
		t.before(&o)
	}
	stop := threads()
	defer stop()
	now, err := confine.MemoryOf("self")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if o.MoreData > 0 {
		o.Config.Limits.Data = now.Data + o.MoreData
	}
	if o.MoreSpace > 0 {
		o.Config.Limits.AddressSpace = now.AddressSpace + o.MoreSpace
	}
	var a answer
	if a.Report, err = confine.Apply(o.Config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	a.Said, err = t.do(&o)
	if err != nil {
		a.Error = err.Error()
		if !errors.As(err, &a.Errno) {
			a.Errno = 9999 // none that there is
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
		return 1
	}
	return 0
}

// run makes a child try something.
func run(t *testing.T, name string, o order) (answer, *os.ProcessState) {
	t.Helper()
	if o.Allowed == "" {
		o = prepare(t, o)
	}
	input, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = []string{"CONFINE_TRY=" + name, "GORACE=atexit_sleep_ms=0"} // the race detector would sleep for a second
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: o.cloneFlags}
	cmd.Stdin = strings.NewReader(string(input))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	var a answer
	if err == nil {
		if err := json.Unmarshal(output, &a); err != nil {
			t.Fatalf("%v in %q", err, output)
		}
		return a, cmd.ProcessState
	}
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		t.Fatal(err)
	}
	a.Error = stderr.String()
	return a, cmd.ProcessState
}

// prepare makes the folders of a child.
func prepare(t *testing.T, o order) order {
	t.Helper()
	root := t.TempDir()
	o.Allowed, o.ReadOnly, o.Outside = filepath.Join(root, "allowed"), filepath.Join(root, "read"), filepath.Join(root, "outside")
	for _, dir := range []string{o.Allowed, o.ReadOnly, o.Outside} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("content of "+filepath.Base(dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if o.Config.Files {
		o.Config.Paths = append(o.Config.Paths,
			confine.Path{Path: o.Allowed, Write: true}, confine.Path{Path: o.ReadOnly}, confine.Path{Path: filepath.Join(root, "missing")})
	}
	o.Parent = os.Getpid()
	return o
}

// sandbox is the configuration of a sandbox process.
func sandbox() order { return order{Config: confine.Config{Files: true, Calls: confine.SandboxCalls}} }

func TestSandboxCan(t *testing.T) {
	t.Parallel()
	for name, try := range tries {
		if !try.can {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, state := run(t, name, sandbox())
			if a.Errno != 0 || !state.Success() {
				t.Fatalf("%v: %v: %s", state, a.Errno, a.Error)
			}
		})
	}
}

func TestSandboxCannot(t *testing.T) {
	t.Parallel()
	needs(t, confine.Available())
	for name, try := range tries {
		if try.can || try.other {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := sandbox()
			o.Port = listen(t)
			a, state := run(t, name, o)
			status := state.Sys().(syscall.WaitStatus)
			if try.killed {
				if !status.Signaled() || status.Signal() != syscall.SIGSYS {
					t.Fatalf("it was not killed: %v, %q, %v", state, a.Said, a.Errno)
				}
				return
			}
			if !state.Success() || a.Errno != try.errno {
				t.Fatalf("%v: got %v (%s), want %v", state, a.Errno, a.Error, try.errno)
			}
		})
	}
}

// TestUnconfined shows that the tries would succeed, so that a refusal means something.
func TestUnconfined(t *testing.T) {
	t.Parallel()
	for name, try := range tries {
		if try.can || try.other || try.privileged {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := order{Port: listen(t)}
			a, state := run(t, name, o)
			if a.Errno != 0 || !state.Success() {
				t.Fatalf("%v: %v: %s", state, a.Errno, a.Error)
			}
		})
	}
}

// needs skips a test where the kernel lacks something.
func needs(t *testing.T, r confine.Report) {
	t.Helper()
	if len(r.Missing) > 0 {
		t.Skip("this system lacks ", strings.Join(r.Missing, ", "))
	}
}
