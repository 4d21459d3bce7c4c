package process_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// rogue is a native plugin that does what its entry says. Its first argument says how it starts.
type rogue struct{ protocol uint32 }

// startRogue is the main function of the plugin.
func startRogue(how string) {
	switch how {
	case "":
		link.Serve(rogue{link.Protocol})
	case "entries":
		link.Serve(nameless{rogue{link.Protocol}})
	case "exit":
		fmt.Fprintln(os.Stderr, "no configuration")
		os.Exit(7)
	case "hang":
		select {}
	case "garbage":
		fmt.Println("hello, world")
		select {}
	case "long": // an endless first line
		for {
			if _, err := os.Stdout.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
				return
			}
		}
	case "version":
		fmt.Println("1|2|unix|/nowhere|grpc|")
		select {}
	case "protocol":
		link.Serve(rogue{link.Protocol + 6})
	case "tcp":
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		fmt.Printf("1|1|tcp|%s|grpc|\n", listener.Addr())
		select {}
	case "elsewhere", "link", "abstract", "above", "file":
		fmt.Printf("1|1|unix|%s|grpc|\n", foreignSocket(how))
		select {}
	case "netrpc":
		fmt.Println("1|1|unix|/nowhere|netrpc|")
		select {}
	}
}

// foreignSocket returns the path of a socket that isn't in the folder for it, or links out of it.
func foreignSocket(how string) string {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	own, other := os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), filepath.Join(folder, "socket")
	if how == "abstract" {
		other = "@" + filepath.Base(folder)
	}
	if _, err := net.Listen("unix", other); err != nil {
		panic(err)
	}
	within := filepath.Join(own, "socket")
	switch how {
	case "link":
		err = os.Symlink(other, within)
	case "above":
		return own + "/../../" + filepath.Base(folder) + "/socket"
	case "file":
		err = os.WriteFile(within, nil, 0o600)
	default:
		return other
	}
	if err != nil {
		panic(err)
	}
	return within
}

// Describe implements [link.Program].
func (r rogue) Describe(context.Context, *protocol.DescribeRequest) (*protocol.DescribeResponse, error) {
	return &protocol.DescribeResponse{Protocol: r.protocol, Sdk: "test", Entries: []string{
		"echo", "exit", "hang", "until", "env", "limits", "flood", "huge", "memory", "daemon", "numbers", "stopped", "nothing", "emit", "broken",
	}}, nil
}

// nameless has an entry whose name controls terminals.
type nameless struct{ rogue }

// Describe implements [link.Program].
func (n nameless) Describe(context.Context, *protocol.DescribeRequest) (*protocol.DescribeResponse, error) {
	return &protocol.DescribeResponse{Protocol: n.protocol, Entries: []string{"a", "\x1b[2J"}}, nil
}

// Release implements [link.Program].
func (rogue) Release(uint32) {}

func output(data []byte) *protocol.Result {
	return &protocol.Result{Outcome: &protocol.Result_Output{Output: data}}
}

// Run implements [link.Program].
func (rogue) Run(ctx context.Context, run *link.Run) *protocol.Result {
	input := string(run.Task.GetInput())
	switch run.Task.GetEntry() {
	case "exit":
		os.Exit(3)
	case "hang":
		say(run, "hangs")
		select {}
	case "until": // announces that it is running, and waits to be stopped
		say(run, "waits")
		<-ctx.Done()
		return &protocol.Result{Outcome: &protocol.Result_Stopped{Stopped: &protocol.Stopped{}}}
	case "stopped": // without having been asked to
		return &protocol.Result{Outcome: &protocol.Result_Stopped{Stopped: &protocol.Stopped{}}}
	case "nothing":
		return &protocol.Result{}
	case "env":
		own, _ := os.ReadFile("/proc/self/environ")
		return output(append([]byte(strings.Join(os.Environ(), "\n")+"\n"), own...))
	case "numbers": // of all processes that it sees
		names, _ := os.ReadDir("/proc")
		var pids []string
		for _, n := range names {
			if strings.Trim(n.Name(), "0123456789") == "" {
				pids = append(pids, n.Name())
			}
		}
		return output([]byte(strings.Join(pids, " ")))
	case "limits":
		text, _ := os.ReadFile("/proc/self/limits")
		status, _ := os.ReadFile("/proc/self/status")
		return output(append(text, status...))
	case "flood":
		line := append(bytes.Repeat([]byte("y"), 1000), '\n')
		lines, _ := strconv.Atoi(string(run.Task.GetInput()))
		for range lines { // of 1 kB, and as much without an end of line
			_, _ = os.Stderr.Write(line)
			_, _ = os.Stderr.Write(line[:1000])
		}
		return output([]byte("said"))
	case "huge":
		return output(make([]byte, 90<<20))
	case "emit": // too large to be sent at all
		_ = run.Post(&protocol.Call{Call: &protocol.Call_Emit{Emit: &protocol.Emit{Data: make([]byte, link.MaxCall)}}})
		return output([]byte("said"))
	case "broken": // strings that are not UTF-8
		_, _ = run.Call(&protocol.Call{Call: &protocol.Call_Info{Info: &protocol.Info{Key: "label.\xff"}}})
		a, err := run.Call(&protocol.Call{Call: &protocol.Call_Metric{Metric: &protocol.Metric{Kind: 1, Name: "\xff"}}})
		if err != nil || a.GetErrno() != -5 {
			return output([]byte("the metric was taken"))
		}
		return &protocol.Result{Outcome: &protocol.Result_Failure{Failure: &protocol.Failure{Message: "a \xff", Stack: "\xfe", Code: "\xff"}}}
	case "memory":
		for all := [][]byte{}; ; {
			all = append(all, bytes.Repeat([]byte{1}, 64<<20))
			if len(all) > 1<<10 {
				return output(nil)
			}
		}
	case "daemon": // leaves processes in groups of their own
		for range 3 {
			cmd := exec.Command("/bin/sh", "-c", "setsid sh -c 'sleep "+input+" & sleep "+input+"' & setsid sleep "+input)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				return output([]byte(err.Error()))
			}
		}
		say(run, "left")
		<-ctx.Done()
	}
	return output(slices.Clone(run.Task.GetInput()))
}

// say publishes a message.
func say(run *link.Run, text string) {
	_ = run.Post(&protocol.Call{Call: &protocol.Call_Emit{Emit: &protocol.Emit{Data: []byte(text)}}})
}
