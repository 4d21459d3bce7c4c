package machine

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory returns how much memory the process may use, in bytes: that of the
// machine, or of its control groups if that is less. [math.MaxInt64] means that
// the amount is unknown.
func Memory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return math.MaxInt64
	}
	least := int64(info.Totalram) * int64(info.Unit)
	dir, err := Group()
	for err == nil {
		var text []byte
		if text, err = os.ReadFile(filepath.Join(dir, "memory.max")); err != nil {
			break // above the root, or the controller is of another version
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // or "max"
			least = min(least, n)
		}
		dir = filepath.Dir(dir)
	}
	return least
}
