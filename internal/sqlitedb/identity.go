package sqlitedb

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Place returns where a directory is, such that no two that are in use at one
// time have the same, and one has the same until the machine is started again: a
// digest of the machine's run, the file system and the directory's number there.
// A copy of the directory is in another place.
func Place(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", explainPath(dir, err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("tell where %s is: the system doesn't", dir)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", machineRun(), stat.Dev, stat.Ino))
	return hex.EncodeToString(sum[:16]), nil
}

// machineRun names the time since the machine was started; where the system has
// no name for it, the machine. Containers share the first and not the second.
func machineRun() string {
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return strings.TrimSpace(string(id))
	}
	name, _ := os.Hostname() // a machine without one differs in its file systems
	return name
}
