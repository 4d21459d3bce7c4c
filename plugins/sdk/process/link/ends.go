package link

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Ends are one side's ends of the pipes between the host and a process.
type Ends struct {
	Read, Write *os.File
	// Bell is the end of a pipe to which the host writes a byte when its frames must be read even though a task that
	// should not take long is in progress: see Alone in [protocol.Task].
	Bell *os.File
}

// NewEnds makes pipes and returns the ends of this process, and those for a child to inherit: see [Ends.Files].
func NewEnds() (own, child Ends, err error) {
	for _, p := range []struct{ read, write **os.File }{{&child.Read, &own.Write}, {&own.Read, &child.Write}, {&child.Bell, &own.Bell}} {
		if *p.read, *p.write, err = os.Pipe(); err != nil {
			return Ends{}, Ends{}, errors.Join(fmt.Errorf("make a pipe: %w", err), own.Close(), child.Close())
		}
	}
	for _, f := range []*os.File{own.Read, own.Write} {
		widen(f)
	}
	return own, child, nil
}

// Files returns the ends in the order in which [ServePipes] expects them, after the standard streams.
func (e Ends) Files() []*os.File { return []*os.File{e.Read, e.Write, e.Bell} }

// Close closes all existing ends.
func (e Ends) Close() error {
	var all error
	for _, f := range e.Files() {
		if f != nil {
			all = errors.Join(all, f.Close())
		}
	}
	return all
}

// inherited returns the ends with which this process was started.
func inherited() (Ends, error) {
	const first = 3 // after the standard streams
	var e Ends
	for i, end := range []**os.File{&e.Read, &e.Write, &e.Bell} {
		// So that waiting for it blocks a goroutine, not a thread.
		if err := syscall.SetNonblock(first+i, true); err != nil {
			return e, fmt.Errorf("the host has not given the process its pipes: %w", err)
		}
		syscall.CloseOnExec(first + i)
		*end = os.NewFile(uintptr(first+i), "host")
	}
	return e, nil
}
