package confine_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/jobhost/jobhost/runtime/process/confine"
)

func muchMemory(*order) (string, error) {
	b, err := unix.Mmap(-1, 0, 1<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return "", err
	}
	return "", unix.Munmap(b)
}

func muchReserve(*order) (string, error) {
	b, err := unix.Mmap(-1, 0, 1<<30, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return "", err
	}
	return "", unix.Munmap(b)
}

func manyFiles(o *order) (string, error) {
	for range 100 {
		if _, err := unix.Open(filepath.Join(o.Allowed, "file"), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return "", err
		}
	}
	return "", nil
}

func crash(o *order) error {
	if err := os.Chdir(o.Allowed); err != nil {
		return err
	}
	return syscall.Kill(os.Getpid(), syscall.SIGQUIT)
}

// allThreads reads what the kernel says of each thread.
func allThreads(*order) (string, error) {
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		return "", err
	}
	var all []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		all = append(all, string(data))
	}
	return strings.Join(all, "---\n"), nil
}

func TestLimits(t *testing.T) {
	t.Parallel()
	space := confine.AddressSpace()
	if space < 1<<20 {
		t.Fatal("it has no address space:", space)
	}
	for _, test := range []struct {
		name   string
		limits confine.Limits
		errno  syscall.Errno
	}{
		{"much memory", confine.Limits{Data: 512 << 20}, unix.ENOMEM},
		{"much reserve", confine.Limits{AddressSpace: space + 512<<20}, unix.ENOMEM},
		{"much reserve", confine.Limits{Data: 512 << 20}, 0}, // only what can be written is data
		{"a large file", confine.Limits{FileSize: 1 << 20}, unix.EFBIG},
		{"many files", confine.Limits{OpenFiles: 50}, unix.EMFILE},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, state := run(t, test.name, order{Config: confine.Config{Limits: test.limits}})
			if !state.Success() || a.Errno != test.errno {
				t.Fatalf("%v: got %v (%s), want %v", state, a.Errno, a.Error, test.errno)
			}
		})
	}
}

func TestLimitsOfCPU(t *testing.T) {
	t.Parallel()
	_, state := run(t, "much CPU", order{Config: confine.Config{Limits: confine.Limits{CPU: time.Second}}})
	status := state.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGXCPU || status.CoreDump() {
		t.Fatal(state)
	}
}

func TestLimitCPUOfOthers(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "read line; ulimit -St; read line")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(confine.LimitCPU(cmd.Process.Pid, 1500*time.Millisecond), confine.LimitCPU(cmd.Process.Pid, 70*time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("\n\n")); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || strings.TrimSpace(out.String()) != "70" {
		t.Fatalf("%q, %v", out.String(), err)
	}
	if err := confine.LimitCPU(1<<22+1, 0); err == nil {
		t.Error("a process that can't be is limited")
	}
}

func TestNegativeLimit(t *testing.T) {
	t.Parallel()
	if _, err := confine.Apply(confine.Config{Limits: confine.Limits{OpenFiles: -1}}); err == nil {
		t.Error("no error")
	}
}

func TestNoCoreDump(t *testing.T) {
	t.Parallel()
	a, state := run(t, "crash", order{Config: confine.Config{}})
	status := state.Sys().(syscall.WaitStatus)
	if state.Success() || status.CoreDump() {
		t.Fatalf("%v %s", state, a.Error)
	}
}

func TestEachThread(t *testing.T) {
	t.Parallel()
	needs(t, confine.Available())
	o := sandbox()
	o.Config.Paths = []confine.Path{{Path: "/proc"}}
	a, state := run(t, "all threads", o)
	if a.Errno != 0 || !state.Success() {
		t.Fatalf("%v: %v %s", state, a.Errno, a.Error)
	}
	threads := strings.Split(a.Said, "---\n")
	if len(threads) < 8 {
		t.Fatal("there are only", len(threads), "threads")
	}
	for _, status := range threads {
		// Landlock is in force, so root keeps CAP_DAC_OVERRIDE.
		for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapInh:\t0000000000000000", "CapPrm:\t000000000000000"} {
			if !strings.Contains(status, want) {
				t.Errorf("no %q in\n%s", want, status)
			}
		}
	}
}

func TestSetTimes(t *testing.T) {
	t.Parallel()
	o := sandbox()
	o.Config.SetTimes = true
	if a, state := run(t, "set times", o); a.Errno != 0 || !state.Success() {
		t.Fatalf("%v: %v %s", state, a.Errno, a.Error)
	}
}

// programs are what a program written by others may need.
func programs() confine.Config {
	return confine.Config{Files: true, NoNetwork: true, Calls: confine.ProgramCalls, Paths: []confine.Path{
		{Path: "/usr", Execute: true},
		{Path: "/bin", Execute: true},
		{Path: "/lib", Execute: true},
		{Path: "/lib64", Execute: true},
		{Path: "/etc"},
		{Path: "/dev/null", Write: true},
	}}
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	needs(t, confine.Available())
	for _, test := range []struct {
		name  string
		errno syscall.Errno
	}{
		{"run true", 0},
		{"fork", 0},
		{"read what may be read", 0},
		{"change what is its own", 0},
		{"listen unix", 0},
		{"read the accounts", 0},
		{"read a file outside", unix.EACCES},
		{"write a file outside", unix.EACCES},
		{"environment of the parent", unix.EACCES},
		{"signal the parent", unix.EPERM},
		{"trace the parent", unix.EPERM},
		{"read the parent's memory", unix.EPERM},
		{"connect by TCP", unix.EPERM},
		{"send by UDP", unix.EPERM},
		{"mount", unix.EPERM},
		{"leave namespaces", unix.EPERM},
		{"queue calls (io_uring)", unix.EPERM},
		{"a call of the future", unix.ENOSYS},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := order{Config: programs(), Port: listen(t)}
			a, state := run(t, test.name, o)
			if !state.Success() || a.Errno != test.errno {
				t.Fatalf("%v: got %v (%s), want %v", state, a.Errno, a.Error, test.errno)
			}
		})
	}
}

// TestNumberSpace: the first process of its own PID namespace, with the /proc of the outer one, like a guard of native
// plugins.
func TestNumberSpace(t *testing.T) {
	t.Parallel()
	needs(t, confine.Available())
	if os.Getuid() != 0 {
		t.Skip("only root can make a number space")
	}
	o := order{Config: confine.Config{Calls: confine.ProgramCalls, KeepCapabilities: true}, cloneFlags: unix.CLONE_NEWPID}
	for name, errno := range map[string]syscall.Errno{"start a program": 0, "fork": 0, "leave namespaces": unix.EPERM, "mount": unix.EPERM} {
		a, state := run(t, name, o)
		if !state.Success() || a.Errno != errno || !a.Report.NoNewPrivileges {
			t.Fatalf("%s: %v: got %v (%s), want %v", name, state, a.Errno, a.Error, errno)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	needs(t, confine.Available())
	a, _ := run(t, "nothing", sandbox())
	want := "limits, no new privileges, files, network, signals, system calls of sandboxes"
	if got := a.Report.String(); got != want && !strings.Contains(got, "missing: signals") {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (confine.Report{Missing: []string{"a", "b"}}).String(); got != "limits; missing: a, b" {
		t.Errorf("got %q", got)
	}
}
