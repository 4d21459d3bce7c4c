//go:build linux && (amd64 || arm64)

package confine

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filter applies a list of system calls to all threads, and no_new_privs, which the calling thread already has.
func filter(c Config, r *Report) error {
	if fault := filterFault(); fault != "" {
		r.Missing = append(r.Missing, fault)
		return nil
	}
	code := sandboxList(c)
	if c.Calls == ProgramCalls {
		code = programList(c)
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	stranger, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	switch {
	case errno == unix.EINVAL || errno == unix.ENOSYS: // systems that only emulate Linux may have a part of it
		r.Missing = append(r.Missing, "system calls ("+errno.Error()+")")
		return nil
	case errno != 0:
		return errno
	case stranger != 0:
		return fmt.Errorf("thread %d has a list of its own", stranger)
	}
	r.Calls = c.Calls
	return nil
}

// filterFault says why lists of system calls don't work here; empty = they do.
func filterFault() string {
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return "system calls (the kernel has no seccomp: " + errno.Error() + ")"
	}
	return ""
}

// Offsets in what the kernel passes to a filter program about a call: its number, the architecture and the
// arguments, eight bytes each, the lower half first.
const (
	offsetCall      = 0
	offsetArch      = 4
	offsetArguments = 16
)

// What to do with a call.
const (
	allow   = unix.SECCOMP_RET_ALLOW
	kill    = unix.SECCOMP_RET_KILL_PROCESS
	refuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unfit   = unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL) // so that Go uses other means
	unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS) // so that callers fall back to an older call
)

// program is a program for the kernel's filter. It compares the number of the call with each one listed; the kernel
// caches for which numbers the answer doesn't depend on arguments.
type program []unix.SockFilter

// newProgram begins with what applies to every list: on another architecture the numbers mean something else.
func newProgram() *program {
	p := &program{}
	p.load(offsetArch)
	p.skipIfEqual(architecture, 1)
	p.end(kill)
	p.load(offsetCall)
	if foreignCalls != 0 {
		p.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, foreignCalls, 0, 1)
		p.end(kill)
	}
	return p
}

func (p *program) add(code uint16, k uint32, yes, no uint8) {
	*p = append(*p, unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no})
}

func (p *program) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }
func (p *program) end(action uint32)  { p.add(unix.BPF_RET|unix.BPF_K, action, 0, 0) }

// skipIfEqual skips n instructions if the loaded value is v.
func (p *program) skipIfEqual(v uint32, n int) {
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, v, uint8(n), 0)
}

// calls applies the same action to several calls.
func (p *program) calls(action uint32, calls ...uint32) {
	for _, c := range calls {
		p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, c, 0, 1)
		p.end(action)
	}
}

// check is a condition on an argument of a call.
type check struct {
	argument int
	mask     uint32   // bits that count; 0 = all
	values   []uint32 // allowed values; the kernel ignores the upper half of an int
	null     bool     // it is a pointer, and must be null
}

// when allows a call if all checks pass; otherwise is the action if not.
func (p *program) when(call, otherwise uint32, checks ...check) {
	body := &program{}
	for _, c := range checks {
		at := uint32(offsetArguments + 8*c.argument)
		if c.null {
			for _, half := range []uint32{at, at + 4} {
				body.load(half)
				body.skipIfEqual(0, 1)
				body.end(otherwise)
			}
			continue
		}
		body.load(at)
		if c.mask != 0 {
			body.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, c.mask, 0, 0)
		}
		for i, v := range c.values {
			body.skipIfEqual(v, len(c.values)-i)
		}
		body.end(otherwise)
	}
	body.end(allow)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, call, 0, uint8(len(*body)))
	*p = append(*p, *body...)
}

// finish sets the action for all other calls. Those that are newer than this list don't exist.
func (p *program) finish(action uint32) []unix.SockFilter {
	p.add(unix.BPF_JMP|unix.BPF_JGT|unix.BPF_K, newestCall, 0, 1)
	p.end(unknown)
	p.end(action)
	return *p
}
