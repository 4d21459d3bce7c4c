package process_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/process"
)

// startHost is the main function of a host that is to be killed: it runs a native plugin that leaves processes
// behind, with that argument, and a sandbox.
func startHost(mark, space string) {
	ctx := context.Background()
	exe, err := os.Executable()
	must(err)
	program, err := os.ReadFile(exe)
	must(err)
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	natives, err := process.NewNatives(process.NativeConfig{Guard: []string{exe, "guard"}, Logger: logger})
	must(err)
	if space == "without" {
		natives.WithoutSpace()
	}
	p, err := natives.Load(ctx, runtime.Source{
		Worker: "native", Path: exe, Bytes: program, ABI: runtime.ABIProcess, Limits: runtime.Limits{MemoryBytes: 1 << 30},
		System: runtime.System{Args: []string{"rogue", ""}},
	})
	must(err)
	sandboxes, err := process.NewSandboxes(process.SandboxConfig{Command: []string{exe, "sandbox"}, Logger: logger})
	must(err)
	_, err = sandboxes.Load(ctx, runtime.Source{Worker: mark, Bytes: guests.Echo})
	must(err)
	i, err := p.Instantiate(ctx)
	must(err)
	i.Run(ctx, &hostcall.Attempt{Entry: "daemon", Input: []byte(mark), Services: left{}, Limits: hostcall.Limits{OutputBytes: 100}})
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// left announces that the processes are running.
type left struct{ hostcall.Services }

// Emit implements [hostcall.Services].
func (left) Emit(*hostcall.Attempt, []byte) { fmt.Println("ready", os.Getpid()) }

// TestOrphans kills a host with SIGKILL whose plugin has left its group, forked and daemonised: soon after, nothing
// of it is left, nor of its sandboxes.
func TestOrphans(t *testing.T) {
	t.Parallel()
	for _, space := range []string{"with", "without"} {
		t.Run(space, func(t *testing.T) {
			t.Parallel()
			mark := fmt.Sprintf("86%d.%d", os.Getpid(), len(space)) // seconds, for sleep
			host := exec.Command(os.Args[0], "host", mark, space)
			host.Stderr = t.Output()
			out, err := host.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			if !lines.Scan() || !strings.HasPrefix(lines.Text(), "ready") {
				_ = host.Process.Kill()
				t.Fatalf("the host says %q; %v", lines.Text(), host.Wait())
			}
			family := func() []string { return append(withArgument(t, mark), childrenOf(t, host.Process.Pid)...) }
			sleeping := func() bool { return strings.Count(strings.Join(family(), "\n"), "sleep") >= 9 }
			within(t, "the plugin leaves processes behind", sleeping)
			before := family()
			for _, p := range before { // the guard, what it guards, what that has started, and the sandbox
				pid, name, _ := strings.Cut(p, " ")
				if score := readFile(t, "/proc/"+pid+"/oom_score_adj"); score != "1000\n" {
					t.Errorf("when memory runs out the score of %s is %q, want that of what ends first", name, score)
				}
			}
			if err := host.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = host.Wait()
			within(t, "nothing is left", func() bool {
				for _, p := range before {
					pid, _, _ := strings.Cut(p, " ")
					if text, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && len(text) > 0 {
						return false
					}
				}
				return len(withArgument(t, mark)) == 0
			})
		})
	}
}

// within waits for a condition, for 5 seconds; longer on busy machines would prove nothing.
func within(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(5 * time.Second)
	for !condition() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not within 5 seconds: %s", what)
		}
	}
}

// withArgument returns the processes with an argument, as "pid command".
func withArgument(t *testing.T, argument string) (found []string) {
	t.Helper()
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		args := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
		if len(args) == 2 && args[1] == argument {
			found = append(found, filepath.Base(filepath.Dir(path))+" "+args[0])
		}
	}
	return found
}

// childrenOf returns the children of a process.
func childrenOf(t *testing.T, pid int) (found []string) {
	t.Helper()
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		for child := range strings.FieldsSeq(string(text)) {
			found = append(found, child+" child")
		}
	}
	return found
}

// TestKilledSandbox kills a sandbox process from outside: the attempt in it fails, or is not counted if it
// wasn't alone, and the next one runs in another process.
func TestKilledSandbox(t *testing.T) {
	t.Parallel()
	p := sandboxOf(t, guests.Echo, 2)
	for range 3 {
		wantOutput(t, run(t, p, "", "before"), "before")
		pids := process.Pids(p)
		for _, pid := range pids {
			victim, err := os.FindProcess(pid)
			if err != nil {
				t.Fatal(err)
			}
			if err := victim.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		// Neither of these may be lost, whether they come before or after the end is noticed.
		for range 4 {
			o := run(t, p, "", "after")
			if string(o.Output) != "after" && (o.Failure == nil || o.Failure.Code != "crash") {
				t.Fatalf("%v %v", o.Kind, o.Failure)
			}
		}
		wantOutput(t, run(t, p, "", "after"), "after")
	}
}
