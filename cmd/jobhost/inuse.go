package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jobhost/jobhost"
)

// listenError says why the host can't listen at an address, and what to do.
func listenError(addr string, err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen: %w", err)
	}
	by := "another program"
	if _, port, err := net.SplitHostPort(addr); err == nil {
		if who := listenerOf("/proc", port); who != "" {
			by = who
		}
	}
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable, Message: fmt.Sprintf("listen on %s: address already in use by %s", addr, by),
		Hint: `stop that one, or give this host another port: listen = "127.0.0.1:7071" under [host]`,
	}
}

// listenerOf names the process that listens at a TCP port, as far as the proc file system at
// a path says; "" if it doesn't, since there is none or the process is another user's.
func listenerOf(proc, port string) string {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return ""
	}
	sockets := listeningSockets(proc, n)
	if len(sockets) == 0 {
		return ""
	}
	fds, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "fd", "*"))
	if err != nil {
		return ""
	}
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err != nil || !sockets[target] {
			continue
		}
		process := filepath.Dir(filepath.Dir(fd))
		name, err := os.ReadFile(filepath.Join(process, "comm"))
		if err != nil {
			continue
		}
		who := fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), filepath.Base(process))
		if dir, err := os.Readlink(filepath.Join(process, "cwd")); err == nil {
			who += " in " + dir
		}
		return who
	}
	return ""
}

// listeningSockets are those that listen at a port, as the links to them are written.
func listeningSockets(proc string, port uint64) map[string]bool {
	const local, state, inode, listens = 1, 3, 9, "0A"
	found := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(filepath.Join(proc, "self", "net", table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > inode && f[state] == listens && strings.HasSuffix(f[local], fmt.Sprintf(":%04X", port)) {
				found["socket:["+f[inode]+"]"] = true
			}
		}
	}
	return found
}
