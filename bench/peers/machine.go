package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
)

// moduleVersions names modules with the versions that are built in.
func moduleVersions(paths ...string) string {
	versions := map[string]string{}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, m := range build.Deps {
			versions[m.Path] = m.Version
		}
	}
	var said []string
	for _, path := range paths {
		short := strings.TrimSuffix(path, "/v5")
		short = strings.TrimSuffix(short, "/v9")
		said = append(said, short[strings.LastIndexByte(short, '/')+1:]+" "+versions[path])
	}
	return strings.Join(said, ", ")
}

// machine says where the figures were made.
func machine(dir string) string {
	model := firstValue("/proc/cpuinfo", "model name", ":")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	distribution := strings.Trim(firstValue("/etc/os-release", "PRETTY_NAME", "="), `"`)
	return fmt.Sprintf("%d × %s, %s, Linux %s, %s/%s, %s, %s on %s", runtime.NumCPU(), model, distribution,
		strings.TrimSpace(string(kernel)), runtime.GOOS, runtime.GOARCH, runtime.Version(), fileSystem(dir), dir)
}

// firstValue is what follows a key in the first line of a file that begins with it.
func firstValue(file, key, separator string) string {
	f, err := os.Open(file)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), separator); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// fileSystem names what a folder is on, where it matters most: what is in
// memory syncs for nothing.
func fileSystem(dir string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "unknown file system"
	}
	switch uint32(s.Type) {
	case 0xEF53:
		return "ext4"
	case 0x58465342:
		return "xfs"
	case 0x9123683E:
		return "btrfs"
	case 0x01021994:
		return "tmpfs (syncs cost nothing!)"
	case 0x794C7630:
		return "overlayfs"
	}
	return fmt.Sprintf("file system %#x", uint32(s.Type))
}

// loadAverage is how many processes wanted to run during the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
