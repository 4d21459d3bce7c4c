//go:build unix

package exec

import (
	"os"
	"syscall"
)

// ask asks a process to end.
func ask(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
