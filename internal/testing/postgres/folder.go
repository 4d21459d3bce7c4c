package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// memory is where Linux has files in memory. There a schema is made in a third of the time: it is about a hundred files.
const memory = "/dev/shm"

// memoryNeeded is what has to be free there; containers often have 64 MiB.
const memoryNeeded = 4 << 30

// newFolder makes the folder of a server, in memory where there is room: what a server has written survives the crash of
// its processes there too, and that of the machine no test waits for. Benchmarks measure a disk.
func newFolder(t testing.TB) (string, error) {
	root := os.TempDir()
	if _, measures := t.(*testing.B); !measures && free(memory) >= memoryNeeded {
		root = memory
	}
	removeStale(root)
	return os.MkdirTemp(root, fmt.Sprintf("jobhost-postgres-%d-", os.Getpid())) //nolint:usetesting // the user of the server can't enter that of the test
}

// removeStale removes what tests have left behind that were killed.
func removeStale(root string) {
	folders, _ := filepath.Glob(filepath.Join(root, "jobhost-postgres-*-*"))
	for _, folder := range folders {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(folder), "jobhost-postgres-%d-", &pid); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(folder)
		}
	}
}
