// Package confine takes from the calling process, for good, what it doesn't need: files, system calls, privileges,
// memory. A sandbox process does that to itself before it looks at a plugin, and what starts a native plugin before
// it becomes the plugin. It is a second wall: the first is the sandbox of WebAssembly.
//
// On Linux there are four means, none of which needs privileges, and none of which can be undone:
//
//	limits        setrlimit: memory, CPU, files; core dumps are off
//	privileges    no_new_privs, no capabilities, not dumpable: nobody of the same user looks into its memory
//	files         Landlock: only the folders that are named; no TCP, no signals to others
//	system calls  seccomp: a list of those that are allowed
//
// Where the kernel lacks one the others hold; [Report] says which do. Elsewhere there are only limits.
package confine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Config says what is taken. The zero value takes privileges and core dumps, which [Apply] always takes.
type Config struct {
	Limits Limits

	// Files says that only Paths are left of all files: others can't be opened. That they are there, and their
	// size, mode and times, can still be seen.
	Files bool
	// Paths are files and folders, with what is below them. Those that aren't there are left out.
	Paths []Path
	// SetTimes leaves the calls that set times of files. Landlock doesn't know them, so they work on every file of
	// the user, whatever Paths says.
	SetTimes bool

	// KeepCapabilities leaves what root may do besides others. Without, that is given up, but for opening files of other
	// users where Landlock bounds that.
	KeepCapabilities bool

	// NoNetwork takes TCP (by Landlock) and all new sockets but those of the kind unix (by the list of calls).
	NoNetwork bool
	// Calls says which list of system calls holds.
	Calls Calls

	// EndFirst asks the kernel to end the process, and those that it starts, before all others when the machine runs out
	// of memory.
	EndFirst bool
}

// Path is a file or folder that is left.
type Path struct {
	Path    string
	Write   bool // it may be changed
	Execute bool // programs and libraries may be run from it
}

// Calls is a list of system calls.
type Calls uint8

// The lists.
const (
	// AllCalls leaves all system calls.
	AllCalls Calls = iota
	// ProgramCalls leaves what ordinary programs need, whatever they are written in: all but those that administer the
	// machine, look into other processes, or are a new and large part of the kernel (bpf, io_uring, userfaultfd).
	ProgramCalls
	// SandboxCalls leaves what a program in Go needs that has its connections already, and files: no programs, no
	// processes, no sockets, and no memory but what AddressSpace counts. An attempt at what only an attacker would do
	// ends the process.
	SandboxCalls
)

// Limits bound the process. 0 = as it is.
type Limits struct {
	// AddressSpace bounds all that is mapped, in bytes, reserved ones included: see [AddressSpace].
	AddressSpace int64
	// Data bounds memory that is its own and can be written, in bytes. It stops mistakes rather than attackers: memory
	// that was written and then made read-only isn't counted any more, nor is what is shared.
	Data      int64
	FileSize  int64 // bytes of a file that it writes
	OpenFiles int
	Processes int // of the user, each thread of each counted
	// CPU is how much it may use since its start; then it ends. The host can raise it: see [LimitCPU].
	CPU time.Duration
	// Raisable says that the host can raise AddressSpace, Data and OpenFiles, too: see [LimitMemory]. So can the
	// process, unless [SandboxCalls] keeps it from that.
	Raisable bool
}

// Report says what holds.
type Report struct {
	// NoNewPrivileges says that no program it starts gets more rights than it has.
	NoNewPrivileges bool
	// Landlock is the version of the kernel's interface, 0 = it has none, or it isn't turned on.
	Landlock int
	// Files, Network and Signals say that Landlock guards them.
	Files, Network, Signals bool
	// Calls is the list that holds.
	Calls Calls
	// Missing says what was asked for and doesn't hold, and why.
	Missing []string
}

// String says it in a line, for logs.
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

// Apply confines the calling process, all its threads. What the kernel doesn't have is told in the report and
// isn't an error; after an error the process is confined in part, and should end.
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

// Available says what Apply could make hold here; nothing is applied. Its Missing says what the system lacks.
func Available() Report { return available() }

func (l Limits) validate() error {
	if min(l.AddressSpace, l.Data, l.FileSize) < 0 || min(l.OpenFiles, l.Processes) < 0 || l.CPU < 0 {
		return errors.New("confine the process: a limit is negative")
	}
	return nil
}

// Memory is what a process has, as [Limits] count it.
type Memory struct {
	AddressSpace, Data int64 // bytes
}

// AddressSpace returns how much address space the calling process has, for limits that say how much more it may have; 0 =
// that isn't known here.
func AddressSpace() int64 {
	m, _ := MemoryOf("self")
	return m.AddressSpace
}

// MemoryOf returns what a process has, by its number.
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
