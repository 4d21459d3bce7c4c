package postgres

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// tick is the unit of times in /proc, on all platforms that Go runs on.
const tick = 10 * time.Millisecond

// CPU returns what the server has used of all processors; 0 where there is no /proc.
func (s *Server) CPU(t testing.TB) time.Duration {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var ticks int64
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has just ended
		}
		pid, parent, own := parseStat(text)
		if root := s.process.Process.Pid; pid == root || parent == root {
			ticks += own
		}
	}
	return time.Duration(ticks) * tick
}

// parseStat reads the process, its parent and the ticks used by it and by its children that it has waited for. The
// name of the program, in parentheses, may contain anything.
func parseStat(text []byte) (pid, parent int, ticks int64) {
	name := bytes.LastIndexByte(text, ')')
	fields := bytes.Fields(text[name+1:])
	if name < 0 || len(fields) < 15 {
		return 0, 0, 0
	}
	pid, _ = strconv.Atoi(string(text[:bytes.IndexByte(text, ' ')]))
	parent, _ = strconv.Atoi(string(fields[1]))
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(string(field), 10, 64)
		ticks += n
	}
	return pid, parent, ticks
}
