package journal

import (
	"os"
	"strings"
)

// bootID is another one each time the machine is started.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(id[:min(len(id), bootBytes)]))
}
