package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// tick is the unit of times in /proc: USER_HZ, which is 100 on all platforms
// that Go runs on.
const tick = 10 * time.Millisecond

// cpuTime is the processor time that this process has used, and that of the
// process given and all its descendants, including those that have ended; pid 0
// = of this process only.
func cpuTime(pid int) (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	own := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if pid == 0 {
		return own, nil
	}
	tree, err := treeTime(pid)
	return own + tree, err
}

// process is a line of /proc/*/stat: its parent, and the ticks used by it and
// by its children that it has waited for.
type process struct {
	parent int
	ticks  int64
}

// treeTime sums the time of a process and of all that descend from it.
func treeTime(root int) (time.Duration, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	all := make(map[int]process, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has just ended
		}
		if err != nil {
			return 0, err
		}
		pid, p, err := parseStat(text)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", file, err)
		}
		all[pid] = p
	}
	if _, ok := all[root]; !ok {
		return 0, fmt.Errorf("there is no process %d", root)
	}
	var sum int64
	for pid, p := range all {
		if descends(all, pid, root) {
			sum += p.ticks
		}
	}
	return time.Duration(sum) * tick, nil
}

func descends(all map[int]process, pid, root int) bool {
	for range len(all) { // a tree that changes while it is read might contain a cycle
		if pid == root {
			return true
		}
		p, ok := all[pid]
		if !ok {
			return false
		}
		pid = p.parent
	}
	return false
}

// parseStat reads a line of /proc/*/stat: pid (name) state parent …, where the
// name may hold spaces and parentheses. Fields 14 to 17 are the times.
func parseStat(line []byte) (int, process, error) {
	open, last := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || last < open {
		return 0, process{}, fmt.Errorf("%q has no name", line)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(line[:open])))
	if err != nil {
		return 0, process{}, err
	}
	fields := bytes.Fields(line[last+1:]) // from the third field on
	if len(fields) < 15 {
		return 0, process{}, fmt.Errorf("%q is too short", line)
	}
	var p process
	if p.parent, err = strconv.Atoi(string(fields[1])); err != nil {
		return 0, process{}, err
	}
	for _, field := range fields[11:15] {
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, process{}, err
		}
		p.ticks += ticks
	}
	return pid, p, nil
}
