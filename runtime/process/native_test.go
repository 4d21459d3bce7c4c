package process_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/process"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// rogue is a native plugin that behaves as its entry says.
type rogue struct{}

func (rogue) Describe(context.Context, *protocol.DescribeRequest) (*protocol.DescribeResponse, error) {
	return &protocol.DescribeResponse{Protocol: link.Protocol, Sdk: "test", Entries: []string{"echo", "exit", "hang", "env"}}, nil
}

func (rogue) Release(uint32) {}

func (rogue) Run(ctx context.Context, run *link.Run) *protocol.Result {
	output := func(data []byte) *protocol.Result {
		return &protocol.Result{Outcome: &protocol.Result_Output{Output: data}}
	}
	switch run.Task.GetEntry() {
	case "exit":
		os.Exit(3)
	case "hang":
		select {}
	}
	return output(run.Task.GetInput())
}

// newNatives returns an engine that is closed at the end of t.
func newNatives(t testing.TB) *process.Natives {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := process.NewNatives(process.NativeConfig{Guard: []string{exe, "guard"}, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// loadNative loads this test's own binary as a plugin, with arguments.
func loadNative(t testing.TB, src runtime.Source, args ...string) (runtime.Plugin, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	src.Worker, src.Path, src.Bytes, src.ABI = "native", exe, program, runtime.ABIProcess
	src.Limits.MemoryBytes = 1 << 30
	src.System.Args = args
	p, err := newNatives(t).Load(t.Context(), src)
	if err == nil {
		t.Cleanup(func() {
			if err := p.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	return p, err
}

func TestNative(t *testing.T) {
	p, err := loadNative(t, runtime.Source{}, "rogue")
	if err != nil {
		t.Fatal(err)
	}
	i := runtimetest.Instance(t, p)
	for _, entry := range []string{"echo", "exit", "echo"} {
		r := i.Run(t.Context(), runtimetest.Attempt(entry, "hello"))
		t.Log(r.Outcome.Kind, string(r.Outcome.Output), r.Outcome.Failure)
	}
}

var _ = exec.Command
var _ = filepath.Join
var _ = errors.Is
