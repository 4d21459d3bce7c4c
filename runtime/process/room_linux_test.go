package process_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/machine"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/process"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// limitOf returns a limit of a process in bytes.
func limitOf(t *testing.T, pid int, name string) int64 {
	t.Helper()
	text := fieldAfter(readFile(t, fmt.Sprintf("/proc/%d/limits", pid)), name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s is %s", name, text)
	}
	return n
}

// sizeOf returns a size of a process in bytes, by its name in /proc.
func sizeOf(t *testing.T, pid int, name string) int64 {
	t.Helper()
	kib, err := strconv.ParseInt(fieldAfter(readFile(t, fmt.Sprintf("/proc/%d/status", pid)), name+":"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// TestRoom: the limits of a process follow from its slots, and grow with them.
func TestRoom(t *testing.T) {
	t.Parallel()
	needWall(t)
	const (
		mib   = 1 << 20
		base  = 1024 * mib
		slot  = (64 + 16 + 64) * mib // a memory with what jobs leave of it, and messages
		slack = 512 * mib            // what the process uses in addition by then
	)
	w := newWalled(t, process.SandboxConfig{})
	p := w.load(t, runtime.Source{Worker: "echo", Bytes: guests.Echo, Slots: 4})
	pid := w.pid(t)
	want := func(slots int64) {
		t.Helper()
		data, space := limitOf(t, pid, "Max data size"), limitOf(t, pid, "Max address space")
		more := min(base+slots*slot, machine.Memory()-slack)
		if had := sizeOf(t, pid, "VmData"); data < more || data > had+more+slack {
			t.Errorf("%d slots: %d MiB of data, want %d besides what it had, which now is %d", slots, data/mib, more/mib, had/mib)
		}
		more = base + slots*slot + 64*mib + 1024*mib
		if had := sizeOf(t, pid, "VmSize"); space < more || space > had+more+slack {
			t.Errorf("%d slots: %d MiB of addresses, want %d besides what it had, which now is %d", slots, space/mib, more/mib, had/mib)
		}
		if files := limitOf(t, pid, "Max open files"); files != 512+slots*64 {
			t.Errorf("%d slots: %d files", slots, files)
		}
	}
	want(4)

	instances := make([]runtime.Instance, 40)
	for i := range instances {
		var err error
		if instances[i], err = p.Instantiate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want(40)
	for _, i := range instances { // all at once, so that each has a memory
		if r := i.Run(t.Context(), runtimetest.Attempt("", "hello")); string(r.Outcome.Output) != "hello" {
			t.Fatalf("%+v", r.Outcome)
		}
	}
	for _, i := range instances {
		if err := i.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	want(40) // what was granted isn't taken back
}

// TestRoomForStacks: guests whose stacks overflow at the same time don't end their process.
func TestRoomForStacks(t *testing.T) {
	t.Parallel()
	needWall(t)
	const slots = 4 / raceFactor
	w := newWalled(t, process.SandboxConfig{})
	p := w.load(t, runtime.Source{Worker: "recurses", Bytes: guests.Outcomes, Slots: slots})
	var running sync.WaitGroup
	for range slots {
		i, err := p.Instantiate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			r := i.Run(t.Context(), runtimetest.Attempt("recurse", ""))
			if f := r.Outcome.Failure; f == nil || f.Code != jobhost.FailStack {
				t.Errorf("%v: %+v", r.Outcome.Kind, f)
			}
			if err := i.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
}

// TestControlGroups: a process is in a group of its own that has limits, or the log says why there is none.
func TestControlGroups(t *testing.T) {
	t.Parallel()
	w := newWalled(t, process.SandboxConfig{})
	w.load(t, runtime.Source{Worker: "echo", Bytes: guests.Echo})
	group := readFile(t, fmt.Sprintf("/proc/%d/cgroup", w.pid(t)))
	log := w.log.String()
	within := strings.Contains(group, "/jobhost-"+strconv.Itoa(os.Getpid())+"-")
	if told := strings.Contains(log, "each process gets a control group"); told != within {
		t.Errorf("it is in %s, and the log says %s", group, log)
	}
	if !within && !strings.Contains(log, "processes get no control groups") {
		t.Error("the log doesn't say why:", log)
	}
}
