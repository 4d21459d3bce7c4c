package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// memory is where Linux has files in memory. Creating a schema, about a hundred files, takes a third of the time there.
const memory = "/dev/shm"

// memoryNeeded is what has to be free there; containers often have 64 MiB.
const memoryNeeded = 4 << 30

// newFolder makes the folder of a server, in memory if there is room: files there survive a crash of the server's processes, and
// no test needs them to survive more. Benchmarks get a folder on disk.
func newFolder(t testing.TB) (string, error) {
	root := os.TempDir()
	if _, measures := t.(*testing.B); !measures && free(memory) >= memoryNeeded {
		root = memory
	}
	removeStale(root)
	return os.MkdirTemp(root, fmt.Sprintf("jobhost-postgres-%d-", os.Getpid())) //nolint:usetesting // the user of the server can't enter that of the test
}

// removeStale removes folders that killed tests have left behind.
func removeStale(root string) {
	folders, _ := filepath.Glob(filepath.Join(root, "jobhost-postgres-*-*"))
	for _, folder := range folders {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(folder), "jobhost-postgres-%d-", &pid); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(folder)
		}
	}
}
