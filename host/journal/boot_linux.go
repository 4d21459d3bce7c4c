package journal

import (
	"os"
	"strings"
)

// bootID changes each time the machine is booted.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(id[:min(len(id), bootBytes)]))
}
