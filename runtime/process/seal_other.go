//go:build !linux

package process

import (
	"errors"
	"fmt"
	"os"
)

// seal returns a private copy of a program: what was verified is what runs, unless a process with
// the host's own rights changes it.
func seal(name string, program []byte) (_ *os.File, err error) {
	writing, err := os.CreateTemp("", "jobhost-"+name+"-*")
	if err != nil {
		return nil, fmt.Errorf("make a place for the program: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(writing.Name()), writing.Close()) }()
	if _, err := writing.Write(program); err != nil {
		return nil, fmt.Errorf("copy the program: %w", err)
	}
	if err := writing.Chmod(0o500); err != nil {
		return nil, fmt.Errorf("make the program executable: %w", err)
	}
	return os.Open(writing.Name())
}

// programPath is where a process finds the program that it was given as descriptor 3.
func programPath() string { return "/dev/fd/3" }
