//go:build !unix

package exec

import (
	"errors"
	"os"
)

// ask asks a process to end, for which there is no way here.
func ask(*os.Process) error { return errors.ErrUnsupported }
