//go:build !wasip1

package jobhost

import (
	"fmt"
	"os"
	"strings"
)

// host is what a job calls: the in-memory one of [Run], or that of [Do]. Code
// outside both has none, and can only log.
type host struct{ Remote }

// fail does nothing: the caller of the handler gets its error.
func (host) fail(int32, string) {}

func (h host) Log(level Level, text string) {
	if h.Remote != nil {
		h.Remote.Log(level, text)
		return
	}
	if level >= LevelInfo {
		_, _ = fmt.Fprintln(os.Stderr, levelName(level)+" "+strings.TrimRight(text, "\r\n"))
	}
}

func (h host) LogLevel() Level {
	if h.Remote == nil {
		return LevelInfo
	}
	return h.Remote.LogLevel()
}
