//go:build !linux

package sqlitedb

import (
	"errors"
	"os"
)

// allocate gives a file so many bytes, with room on the disk for each of them.
func allocate(*os.File, int64) error { return errors.ErrUnsupported }
