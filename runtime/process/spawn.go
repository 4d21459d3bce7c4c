package process

import (
	"errors"
	"os/exec"
	goruntime "runtime"
	"sync"
)

// spawner starts processes from a dedicated thread. The parent death signal is sent when the
// thread that started a process ends, and Go ends threads as it likes.
type spawner struct {
	mu     sync.Mutex // protects closed, and ensures that nothing is sent after close
	closed bool
	work   chan func()
}

func newSpawner() *spawner {
	s := &spawner{work: make(chan func())}
	go func() {
		goruntime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for do := range s.work {
			do()
		}
	}()
	return s
}

var errSpawnerClosed = errors.New("the engine is closed")

// start starts a command.
func (s *spawner) start(cmd *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errSpawnerClosed
	}
	done := make(chan error, 1)
	s.work <- func() { done <- cmd.Start() }
	return <-done
}

// close ends the thread, and with it every process started by it that still runs.
func (s *spawner) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.work)
	}
}
