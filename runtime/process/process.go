// Package process runs plugins in processes of their own: Wasm in children of the host's own binary (the process
// sandbox), and native executables. Both speak one protocol, that of plugins/sdk/process.
//
//	Instance.Run ─► run ─► frames ─► batches ─► stream ═► process
//	                 ▲                                       │
//	   hostcall ◄────┴─ calls ◄─ frames ◄─ batches ◄═════════┘
//
// Everything a process asks for is done by the attempt in the host, with its grants and limits. A process that
// doesn't end in time is killed, and one that has died is restarted; the other attempts that were in progress in
// it are not counted.
//
// Each process has a few goroutines: two read its output, one waits for its end, one receives from its stream (or a
// lone attempt does), and one keeps it running. They end with the process, and Close waits for that.
package process

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime/process/cgroup"
)

// engine is what both kinds of processes share.
type engine struct {
	logger  *slog.Logger
	spawner *spawner
	sockets *sockets
	divided sync.Once    // for groups
	groups  *cgroup.Tree // see tree
	looking atomic.Bool  // see child
	observe Observer
}

// Observer is notified about processes. Its methods must not block.
type Observer interface {
	Started(worker string, pid int)
	Ended(worker, why string) // why is one of [Ends]
}

// End is why a process has ended. There are only a few, so that they can be labels of a metric.
type End string

// The ends.
const (
	EndedClosed  End = "closed"  // it is no longer needed
	EndedCrashed End = "crashed" // on its own
	EndedKilled  End = "killed"  // an attempt in it did not end in time
	EndedHung    End = "hung"    // it did not answer
)

// Ends lists all ends.
func Ends() []End { return []End{EndedClosed, EndedCrashed, EndedKilled, EndedHung} }

type noObserver struct{}

func (noObserver) Started(string, int)  {}
func (noObserver) Ended(string, string) {}

func newEngine(logger *slog.Logger, observe Observer) (*engine, error) {
	if observe == nil {
		observe = noObserver{}
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	sockets, err := newSockets()
	if err != nil {
		return nil, err
	}
	return &engine{logger: logger, spawner: newSpawner(), sockets: sockets, observe: observe}, nil
}

// tree returns the control groups of processes, nil if there can be none. The first process asks for it: a host without
// processes stays in its group.
func (e *engine) tree() *cgroup.Tree {
	e.divided.Do(func() {
		var err error
		if e.groups, err = cgroup.Open(); err != nil {
			e.logger.Info("processes get no control groups: each is limited by itself", logkey.Reason, err.Error())
			return
		}
		e.logger.Info("each process gets a control group", logkey.Path, e.groups.Dir())
	})
	return e.groups
}

// close frees the engine. No process may be left.
func (e *engine) close() error {
	e.spawner.close()
	e.groups.Close()
	return e.sockets.close()
}
