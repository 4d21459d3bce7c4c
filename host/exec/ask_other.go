//go:build !unix

package exec

import (
	"errors"
	"os"
)

// ask fails: there is no way to ask a process to end on this system.
func ask(*os.Process) error { return errors.ErrUnsupported }
