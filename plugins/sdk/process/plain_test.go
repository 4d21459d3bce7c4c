package process_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// TestPlain performs the handshake by hand and without certificates, as a tool that inspects a worker may, with
// the smallest workers in all languages.
func TestPlain(t *testing.T) {
	t.Parallel()
	for name, hello := range map[string]func(t *testing.T) *exec.Cmd{
		"go": func(t *testing.T) *exec.Cmd { return exec.CommandContext(t.Context(), built(t, "hello").Path) },
		"python": func(t *testing.T) *exec.Cmd {
			if err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import grpc, cryptography").Run(); err != nil {
				t.Skip("/usr/bin/python3 lacks grpc or cryptography")
			}
			return script(t, "python/hello", "./hello.py")
		},
		"node": func(t *testing.T) *exec.Cmd {
			toolchain.Need(t, "node")
			toolchain.NeedModule(t, "@grpc/grpc-js")
			return script(t, "node/hello", "./hello.js")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := hello(t)
			t.Run("by hand", func(t *testing.T) { testByHand(t, hello(t)) })
			sockets, err := os.MkdirTemp("", "jh") //nolint:usetesting // whose folders have names that are too long for a socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(sockets) })
			cmd.Env = toolchain.Env("JOBHOST_PLUGIN=worker", "PLUGIN_PROTOCOL_VERSIONS=1", "PLUGIN_UNIX_SOCKET_DIR="+sockets)
			testPlain(t, cmd, sockets)
		})
	}
}

func script(t *testing.T, dir, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Dir = dir
	return cmd
}

// testByHand: a worker that is started by hand explains what it is.
func testByHand(t *testing.T, cmd *exec.Cmd) {
	cmd.Env = toolchain.Env()
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() > 2 || !strings.Contains(string(out), "hello") || !strings.Contains(string(out), `abi = "process"`) {
		t.Errorf("%v: %s", err, out)
	}
}

func testPlain(t *testing.T, cmd *exec.Cmd, sockets string) {
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	greeting, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(strings.TrimSuffix(greeting, "\n"), "|")
	if len(parts) != 6 || strings.Join(parts[:3], "|") != "1|1|unix" || parts[4] != "grpc" || parts[5] != "" || !strings.HasPrefix(parts[3], sockets+string(filepath.Separator)) {
		t.Fatalf("greeting %q", greeting)
	}
	conn, err := grpc.NewClient("unix:"+parts[3], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	health, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
	if err != nil || health.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health %v, %v", health, err)
	}
	worker := protocol.NewWorkerClient(conn)
	if _, err := worker.Describe(t.Context(), &protocol.DescribeRequest{Protocol: 99}); err == nil {
		t.Error("it speaks version 99 of the protocol")
	}
	d, err := worker.Describe(t.Context(), &protocol.DescribeRequest{Protocol: 1, Worker: "hello", Slots: 2})
	if err != nil || d.GetProtocol() != 1 || len(d.GetEntries()) != 1 || d.GetEntries()[0] != "default" || d.GetSdk() == "" {
		t.Fatalf("%v, %v", d, err)
	}
	testStream(t, worker)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// testStream sends three tasks in one batch, drains the worker and ends the stream.
func testStream(t *testing.T, worker protocol.WorkerClient) {
	stream, err := worker.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	frames := []*protocol.HostFrame{
		{Run: 99, Frame: &protocol.HostFrame_Cancel{Cancel: &protocol.Cancel{}}}, // there is no such run
		{Frame: &protocol.HostFrame_Release{Release: &protocol.Release{Slot: 3}}},
	}
	for run := range uint64(3) {
		task := &protocol.Task{Job: "j", Tasks: 1, Attempt: 1, Input: []byte("Ada"), InputBytes: 3}
		frames = append(frames, &protocol.HostFrame{Run: run + 1, Frame: &protocol.HostFrame_Task{Task: task}})
	}
	if err := stream.Send(&protocol.ToWorker{Frames: frames}); err != nil {
		t.Fatal(err)
	}
	for left := 3; left > 0; {
		batch, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range batch.GetFrames() {
			if got := f.GetResult().GetOutput(); string(got) != "hello, Ada" {
				t.Errorf("%v", f)
			}
			left--
		}
	}
	if _, err := worker.Drain(t.Context(), &protocol.DrainRequest{}); err != nil {
		t.Error(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	if _, err := stream.Recv(); err == nil {
		t.Error("the stream goes on")
	}
}
