package wasm

import (
	"context"
	"errors"

	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/extismabi"
)

// NewPolling returns an engine as it is where the test of the meter fails.
func NewPolling(config Config) (*Engine, error) {
	return open(config, func(*Engine, context.Context) error { return errors.New("the meter is not to be used") })
}

// DeafMeter makes the end of its context the only thing that stops an instance.
func (i *Instance) DeafMeter() { i.stop.halt = i.cancel }

// Contents is all that jobs in a sandbox can read and change, but for tables.
type Contents struct {
	// Memories of the modules, and of the kernel of an Extism plugin. They are
	// the guest's, not copies.
	Memories [][]byte
	Globals  []uint64
}

// ContentsOf returns what is in an instance.
func ContentsOf(instance runtime.Instance) Contents {
	i := instance.(*Instance)
	var c Contents
	for _, b := range i.bodies {
		c.Memories = append(c.Memories, b.memory.Bytes())
		for _, g := range b.globals {
			c.Globals = append(c.Globals, g.Get())
		}
	}
	if i.frame.extism != nil {
		kernel := i.frame.extism.Resolve(extismabi.Module).Memory()
		b, _ := kernel.Read(0, kernel.Size())
		c.Memories = append(c.Memories, b)
	}
	return c
}

// Running is how many runs of all instances are under way.
func (e *Engine) Running() int64 { return e.dog.running.Load() }

// SharesCode reports whether two open plugins run the same compiled code.
func SharesCode(a, b runtime.Plugin) bool { return a.(*Plugin).code == b.(*Plugin).code }

// Codes is how many pieces of compiled code are in use.
func (e *Engine) Codes() int {
	e.codes.mu.Lock()
	defer e.codes.mu.Unlock()
	return len(e.codes.used)
}
