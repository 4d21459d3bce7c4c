// Package confine permanently takes away from the calling process what it doesn't need: files, system calls,
// privileges, memory. A sandbox process does that to itself before it looks at a plugin, and a native plugin's
// guard before it becomes the plugin. It is a second wall: the first is the sandbox of WebAssembly.
//
// On Linux there are four mechanisms, none of which needs privileges, and none of which can be undone:
//
//	limits        setrlimit: memory, CPU, files; core dumps are off
//	privileges    no_new_privs, no capabilities, not dumpable: other processes of the user can't read its memory
//	files         Landlock: only the folders that are named; no TCP, no signals to others
//	system calls  seccomp: a list of those that are allowed
//
// If the kernel lacks one, the others still hold; [Report] says which do. On other systems there are only limits.
package confine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Config says what is taken away. The zero value takes privileges and core dumps, which [Apply] always does.
type Config struct {
	Limits Limits

	// Files restricts all files to Paths: others can't be opened. Their existence, size, mode and times can
	// still be seen.
	Files bool
	// Paths are files and folders, including what is below them. Missing ones are ignored.
	Paths []Path
	// SetTimes keeps the calls that set file times. Landlock doesn't cover them, so they work on every file of the
	// user, whatever Paths says.
	SetTimes bool

	// KeepCapabilities keeps root's extra privileges. Otherwise they are dropped, except for opening other users' files
	// where Landlock limits that.
	KeepCapabilities bool

	// NoNetwork takes away TCP (by Landlock) and all new sockets except unix ones (by the list of calls).
	NoNetwork bool
	// Calls says which list of system calls applies.
	Calls Calls

	// EndFirst asks the kernel to kill the process, and those that it starts, before all others when the machine runs
	// out of memory.
	EndFirst bool
}

// Path is a file or folder that remains accessible.
type Path struct {
	Path    string
	Write   bool // it may be modified
	Execute bool // programs and libraries may be run from it
}

// Calls is a list of system calls.
type Calls uint8

// The lists.
const (
	// AllCalls allows all system calls.
	AllCalls Calls = iota
	// ProgramCalls allows what ordinary programs in any language need: everything except calls that administer the
	// machine, look into other processes, or belong to a new and large part of the kernel (bpf, io_uring, userfaultfd).
	ProgramCalls
	// SandboxCalls allows what a Go program needs that already has its connections, and files: no programs, no
	// processes, no sockets, and no memory except what AddressSpace counts. An attempt at something only an attacker
	// would do ends the process.
	SandboxCalls
)

// Limits limit the process. 0 = unchanged.
type Limits struct {
	// AddressSpace limits everything that is mapped, in bytes, including reservations: see [AddressSpace].
	AddressSpace int64
	// Data limits private writable memory, in bytes. It stops mistakes rather than attackers: memory that was written
	// and then made read-only no longer counts, nor does shared memory.
	Data      int64
	FileSize  int64 // bytes of a file that it writes
	OpenFiles int
	Processes int // of the user; each thread counts
	// CPU is how much it may use in total since its start; then it is killed. The host can raise it: see [LimitCPU].
	CPU time.Duration
	// Raisable means that the host can raise AddressSpace, Data and OpenFiles, too: see [LimitMemory]. So can
	// the process itself, unless [SandboxCalls] prevents it.
	Raisable bool
}

// Report says what is in force.
type Report struct {
	// NoNewPrivileges means that no program it starts gets more privileges than it has.
	NoNewPrivileges bool
	// Landlock is the version of the kernel's interface; 0 = it has none, or it is disabled.
	Landlock int
	// Files, Network and Signals mean that Landlock restricts them.
	Files, Network, Signals bool
	// Calls is the list in force.
	Calls Calls
	// Missing says what was requested and isn't in force, and why.
	Missing []string
}

// String returns the report as one line, for logs.
func (r Report) String() string {
	var held []string
	for _, h := range []struct {
		holds bool
		name  string
	}{
		{r.NoNewPrivileges, "no new privileges"},
		{r.Files, "files"},
		{r.Network, "network"},
		{r.Signals, "signals"},
		{r.Calls == ProgramCalls, "system calls of programs"},
		{r.Calls == SandboxCalls, "system calls of sandboxes"},
	} {
		if h.holds {
			held = append(held, h.name)
		}
	}
	text := "limits"
	if len(held) > 0 {
		text += ", " + strings.Join(held, ", ")
	}
	if len(r.Missing) > 0 {
		text += "; missing: " + strings.Join(r.Missing, ", ")
	}
	return text
}

// Apply confines the calling process, with all its threads. What the kernel lacks is listed in the report and
// isn't an error; after an error the process is only partly confined, and should end.
func Apply(c Config) (Report, error) {
	if err := c.Limits.validate(); err != nil {
		return Report{}, err
	}
	if err := setLimits(c.Limits); err != nil {
		return Report{}, fmt.Errorf("limit the process: %w", err)
	}
	r, err := apply(c)
	if err != nil {
		return r, fmt.Errorf("confine the process: %w", err)
	}
	return r, nil
}

// Available says what Apply could put in force here, without applying anything. Its Missing says what the system lacks.
func Available() Report { return available() }

func (l Limits) validate() error {
	if min(l.AddressSpace, l.Data, l.FileSize) < 0 || min(l.OpenFiles, l.Processes) < 0 || l.CPU < 0 {
		return errors.New("confine the process: a limit is negative")
	}
	return nil
}

// Memory is what a process uses, as [Limits] count it.
type Memory struct {
	AddressSpace, Data int64 // bytes
}

// AddressSpace returns how much address space the calling process uses, for limits that say how much more it may use; 0
// = unknown on this system.
func AddressSpace() int64 {
	m, _ := MemoryOf("self")
	return m.AddressSpace
}

// MemoryOf returns what a process uses, by its pid.
func MemoryOf(pid string) (Memory, error) {
	data, err := os.ReadFile("/proc/" + pid + "/statm")
	if err != nil {
		return Memory{}, fmt.Errorf("read the memory of a process: %w", err)
	}
	var pages [6]int64 // all, resident, shared, text, unused, data with stacks
	for n, field := range strings.Fields(string(data)) {
		if n == len(pages) {
			break
		}
		if pages[n], err = strconv.ParseInt(field, 10, 64); err != nil {
			return Memory{}, fmt.Errorf("read the memory of a process: %w", err)
		}
	}
	page := int64(os.Getpagesize())
	return Memory{AddressSpace: pages[0] * page, Data: pages[5] * page}, nil
}

// seconds rounds up, since the system counts in seconds.
func seconds(d time.Duration) uint64 { return uint64((d + time.Second - 1) / time.Second) }
