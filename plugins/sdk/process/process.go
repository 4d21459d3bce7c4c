// Package process is the SDK for Go workers that are processes of their own: native
// programs, started by the host, that may do what a sandbox prevents: use all
// processors, cgo, the network and the files of their user.
//
//	package main
//
//	import (
//		"context"
//
//		"github.com/jobhost/jobhost/plugins/sdk/process"
//	)
//
//	func main() { process.Serve(hello) }
//
//	func hello(ctx context.Context, job *process.Job) ([]byte, error) {
//		return append([]byte("hello, "), job.Input()...), nil
//	}
//
// A job offers the same as in the SDK for Wasm, package plugins/sdk/go, whose types are used
// here: a handler that is limited to them can move from one to the other.
package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// Handler does one job. What it returns, after what it wrote to the job, is the result, and must
// not be modified any more. Handlers run concurrently, each on a goroutine of its own, as many
// as the worker has slots in the manifest.
//
// ctx ends when the job is cancelled, with the cause [ErrCancelled], when the attempt is past its deadline,
// and when the host ends. A handler that doesn't return within a second after the deadline is killed, with
// the process and everything that runs in it.
//
// An error fails the attempt, which is retried as the worker's retry policy says;
// wrap it with [jobhost.Permanent] or return [jobhost.Snooze] to say otherwise. A
// panic fails the attempt with code "panic", and the process continues.
//
// [jobhost.Permanent]: https://pkg.go.dev/github.com/jobhost/jobhost/plugins/sdk/go#Permanent
// [jobhost.Snooze]: https://pkg.go.dev/github.com/jobhost/jobhost/plugins/sdk/go#Snooze
type Handler func(ctx context.Context, job *Job) ([]byte, error)

// Worker is the work of a process. Handler or Entries are required.
type Worker struct {
	// Handler is the default entry.
	Handler Handler
	// Entries are further ones, by the names that jobs use for them.
	Entries map[string]Handler
	// Start is called once, before the first job; nil = nothing to do. An error keeps
	// the worker from being loaded, and is reported by the host.
	Start func(ctx context.Context, host Host) error
}

// Host describes the host to a worker that starts.
type Host struct {
	Worker  string            // name in the manifest
	Config  map[string]string // from the manifest
	Slots   int               // jobs that may run at one time in this process
	Version string            // of the host, for people
}

// DefaultEntry is the entry name of Handler. In a worker without Handler the first of its Entries, by name,
// serves jobs that name none.
const DefaultEntry = "default"

// Serve does jobs with a handler until the host ends the process. It doesn't return.
func Serve(h Handler) { Worker{Handler: h}.Serve() }

// Serve does jobs until the host ends the process. It doesn't return.
func (w Worker) Serve() {
	hand := link.Handshake()
	if os.Getenv(hand.MagicCookieKey) != hand.MagicCookieValue {
		name := filepath.Base(os.Args[0])
		_, _ = fmt.Fprintf(os.Stderr, "%s is a worker for jobhost, which starts it: see its section of the manifest, with abi = \"process\"\n", name)
		os.Exit(2)
	}
	link.Serve(&program{worker: w, stdout: os.Stdout, stderr: os.Stderr})
}

// program implements [link.Program].
type program struct {
	worker         Worker
	stdout, stderr *os.File

	// Set by Describe, before there are tasks.
	host     Host
	handlers map[string]Handler // by entry; empty = the default
}

// Describe implements [link.Program].
func (p *program) Describe(ctx context.Context, r *protocol.DescribeRequest) (*protocol.DescribeResponse, error) {
	// go-plugin has replaced them by pipes whose other end is never read.
	if p.stdout != nil {
		os.Stdout, os.Stderr = p.stdout, p.stderr
	}
	p.host = Host{Worker: r.GetWorker(), Config: r.GetConfig(), Slots: int(r.GetSlots()), Version: r.GetHost()}
	p.handlers = make(map[string]Handler, len(p.worker.Entries)+2)
	maps.Copy(p.handlers, p.worker.Entries)
	entries := slices.Sorted(maps.Keys(p.handlers))
	if p.worker.Handler != nil {
		p.handlers[DefaultEntry] = p.worker.Handler
		entries = slices.Insert(slices.DeleteFunc(entries, func(name string) bool { return name == DefaultEntry }), 0, DefaultEntry)
	}
	if len(entries) == 0 {
		return nil, errors.New("the worker has no handler")
	}
	p.handlers[""] = p.handlers[entries[0]]
	if p.worker.Start != nil {
		if err := p.worker.Start(ctx, p.host); err != nil {
			return nil, fmt.Errorf("start worker %s: %w", p.host.Worker, err)
		}
	}
	return &protocol.DescribeResponse{Protocol: link.Protocol, Sdk: "go " + runtime.Version(), Entries: entries}, nil
}

// Release implements [link.Program]. Slots have no state.
func (p *program) Release(uint32) {}
