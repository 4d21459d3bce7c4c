//go:build !unix

package wasiabi

import (
	"os"
	"syscall"
)

func setAppend(*os.File, bool) error { return syscall.EOPNOTSUPP }
