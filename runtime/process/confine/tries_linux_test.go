package confine_test

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// try is something that a confined process does.
type try struct {
	do     func(*order) (string, error)
	before func(*order) // it confines itself

	can        bool          // a sandbox can do it
	errno      syscall.Errno // with which it fails in a sandbox
	killed     bool          // or how else
	other      bool          // it is for a test of its own
	privileged bool          // a process that isn't confined can't do it either, without privileges
}

var tries = map[string]try{
	// What a sandbox needs.
	"read what may be read":   {can: true, do: func(o *order) (string, error) { return read(o.ReadOnly, "file") }},
	"list what may be read":   {can: true, do: func(o *order) (string, error) { _, err := os.ReadDir(o.ReadOnly); return "", err }},
	"change what is its own":  {can: true, do: change},
	"keep a compiled module":  {can: true, do: cache},
	"open files by a root":    {can: true, do: byRoot},
	"seal memory it opened":   {can: true, before: openMemory, do: sealed},
	"reserve and run memory":  {can: true, do: executable},
	"start threads":           {can: true, do: func(*order) (string, error) { threads()(); return "", nil }},
	"get randomness":          {can: true, do: func(*order) (string, error) { return rand.Text(), nil }},
	"ask and wait for time":   {can: true, do: func(*order) (string, error) { return (<-time.After(time.Millisecond)).String(), nil }},
	"signal itself":           {can: true, do: func(*order) (string, error) { return "", syscall.Kill(os.Getpid(), syscall.SIGURG) }},
	"collect garbage":         {can: true, do: func(*order) (string, error) { collect(); return "", nil }},
	"accept a connection":     {can: true, before: listenUnix, do: accept},
	"scan an open page map":   {can: true, before: openPageMap, do: scan},
	"look at its own limits":  {can: true, do: func(*order) (string, error) { var r unix.Rlimit; return "", unix.Getrlimit(unix.RLIMIT_AS, &r) }},
	"see that a file exists":  {can: true, do: func(o *order) (string, error) { _, err := os.Stat(filepath.Join(o.Outside, "file")); return "", err }},
	"fail to find a file":     {can: true, do: func(o *order) (string, error) { return "", absent(o) }},
	"pipes, polls, and so on": {can: true, do: pipes},

	// Files.
	"read a file outside":    {errno: unix.EACCES, do: func(o *order) (string, error) { return read(o.Outside, "file") }},
	"list a folder outside":  {errno: unix.EACCES, do: func(o *order) (string, error) { _, err := os.ReadDir(o.Outside); return "", err }},
	"read by a link":         {errno: unix.EACCES, do: byLink},
	"read the accounts":      {errno: unix.EACCES, do: func(*order) (string, error) { return read("/etc", "passwd") }},
	"write a file outside":   {errno: unix.EACCES, do: func(o *order) (string, error) { return "", os.WriteFile(filepath.Join(o.Outside, "new"), nil, 0o600) }},
	"write what may be read": {errno: unix.EACCES, do: func(o *order) (string, error) { return "", os.WriteFile(filepath.Join(o.ReadOnly, "new"), nil, 0o600) }},
	"truncate what may be read": {errno: unix.EACCES, do: func(o *order) (string, error) {
		_, err := os.OpenFile(filepath.Join(o.ReadOnly, "file"), os.O_TRUNC, 0)
		return "", err
	}},
	"truncate by path":      {errno: unix.EPERM, do: func(o *order) (string, error) { return "", os.Truncate(filepath.Join(o.Outside, "file"), 0) }},
	"remove a file outside": {errno: unix.EACCES, do: func(o *order) (string, error) { return "", unix.Unlink(filepath.Join(o.Outside, "file")) }},
	"move a file in": {errno: unix.EACCES, do: func(o *order) (string, error) {
		return "", os.Rename(filepath.Join(o.Outside, "file"), filepath.Join(o.Allowed, "got"))
	}},
	"link a file in": {errno: unix.EXDEV, do: func(o *order) (string, error) {
		return "", os.Link(filepath.Join(o.ReadOnly, "file"), filepath.Join(o.Allowed, "got"))
	}},
	"make a socket file": {errno: unix.EPERM, privileged: true, do: func(o *order) (string, error) {
		return "", unix.Mknod(filepath.Join(o.Allowed, "s"), unix.S_IFSOCK|0o600, 0)
	}},
	"change the mode of a file": {errno: unix.EPERM, do: func(o *order) (string, error) { return "", os.Chmod(filepath.Join(o.Outside, "file"), 0o777) }},
	"change the owner of a file": {errno: unix.EPERM, do: func(o *order) (string, error) {
		return "", os.Chown(filepath.Join(o.Outside, "file"), os.Getuid(), os.Getgid())
	}},
	"change the times of a file": {errno: unix.EPERM, do: func(o *order) (string, error) {
		return "", os.Chtimes(filepath.Join(o.Outside, "file"), time.Now(), time.Now())
	}},
	"change attributes of a file": {errno: unix.EPERM, privileged: true, do: func(o *order) (string, error) {
		return "", unix.Setxattr(filepath.Join(o.Outside, "file"), "user.x", []byte("y"), 0)
	}},
	"environment of the parent": {errno: unix.EACCES, privileged: true, do: func(o *order) (string, error) { return read("/proc", strconv.Itoa(o.Parent)+"/environ") }},
	"memory of the parent":      {errno: unix.EACCES, privileged: true, do: func(o *order) (string, error) { return "", open("/proc/" + strconv.Itoa(o.Parent) + "/mem") }},
	"its own memory as a file":  {errno: unix.EACCES, privileged: true, do: func(*order) (string, error) { return "", open("/proc/self/mem") }},
	"open a device":             {errno: unix.EACCES, do: func(*order) (string, error) { return "", open("/dev/null") }},

	// Processes.
	"start a program":            {killed: true, do: startProgram},
	"become a program":           {killed: true, do: becomeProgram},
	"fork":                       {killed: true, do: fork},
	"trace the parent":           {killed: true, privileged: true, do: func(o *order) (string, error) { return "", unix.PtraceAttach(o.Parent) }},
	"read the parent's memory":   {killed: true, privileged: true, do: readParent},
	"signal the parent":          {errno: unix.EPERM, do: func(o *order) (string, error) { return "", syscall.Kill(o.Parent, 0) }},
	"signal all":                 {errno: unix.EPERM, privileged: true, do: func(*order) (string, error) { return "", syscall.Kill(-1, 0) }},
	"signal a thread of others":  {errno: unix.EPERM, do: func(o *order) (string, error) { return "", unix.Tgkill(o.Parent, o.Parent, 0) }},
	"a descriptor of the parent": {errno: unix.EPERM, do: func(o *order) (string, error) { fd, err := unix.PidfdOpen(o.Parent, 0); return strconv.Itoa(fd), err }},
	"limits of the parent": {errno: unix.EPERM, do: func(o *order) (string, error) {
		var r unix.Rlimit
		return "", unix.Prlimit(o.Parent, unix.RLIMIT_CPU, nil, &r)
	}},
	"raise its own limits":  {errno: unix.EPERM, do: raise},
	"leave its group":       {errno: unix.EPERM, privileged: true, do: func(*order) (string, error) { return "", syscall.Setpgid(0, 0) }},
	"survive its parent":    {errno: unix.EPERM, do: func(*order) (string, error) { return "", unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) }},
	"be dumpable":           {errno: unix.EPERM, do: func(*order) (string, error) { return "", unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }},
	"be told of by signals": {errno: unix.EPERM, do: func(o *order) (string, error) { _, err := unix.FcntlInt(1, unix.F_SETOWN, o.Parent); return "", err }},
	"be somebody else":      {errno: unix.EPERM, privileged: true, do: func(*order) (string, error) { return "", call(unix.SYS_SETUID, 1) }},

	// Memory that no limit counts, or not enough.
	"share memory by a key":        {errno: unix.EPERM, do: byKey},
	"share memory":                 {errno: unix.EPERM, do: taking(sharedMemory)},
	"share memory, checked":        {errno: unix.EPERM, privileged: true, do: taking(checkedMemory)},
	"keep memory in files":         {errno: unix.EPERM, do: taking(memoryFiles)},
	"make its memory's file grow":  {errno: unix.EPERM, privileged: true, before: openMemory, do: growMemory},
	"share its memory's file":      {errno: unix.EPERM, before: openMemory, do: taking(sharedFile)},
	"use a stack that grows":       {errno: unix.EPERM, do: taking(growingStack)},
	"use large pages":              {errno: unix.EPERM, privileged: true, do: taking(largePages)},
	"make a pipe larger":           {errno: unix.EPERM, do: largerPipe},
	"keep pages of files in pipes": {errno: unix.EINVAL, do: splice},
	"lock many parts of a file":    {errno: unix.EPERM, do: lockParts},
	"give pages to a pipe":         {errno: unix.EPERM, do: givePages},
	"be ended last":                {errno: unix.EACCES, do: func(*order) (string, error) { return "", os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) }},

	// The network.
	"connect by TCP": {errno: unix.EPERM, do: connect},
	"listen by TCP":  {errno: unix.EPERM, do: func(*order) (string, error) { _, err := net.Listen("tcp", "127.0.0.1:0"); return "", err }},
	"send by UDP": {errno: unix.EPERM, do: func(o *order) (string, error) {
		_, err := net.Dial("udp", fmt.Sprint("127.0.0.1:", o.Port))
		return "", err
	}},
	"make a socket": {errno: unix.EPERM, do: func(*order) (string, error) { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); return "", err }},
	"make a pair of sockets": {errno: unix.EPERM, do: func(*order) (string, error) {
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		return "", err
	}},
	"listen on what it has": {errno: unix.EPERM, before: unboundSocket, do: func(*order) (string, error) { return "", unix.Listen(kept, 1) }},
	"connect what it has":   {errno: unix.EPERM, privileged: true, before: unboundSocket, do: connectKept},
	"send on what it has": {errno: unix.EPERM, privileged: true, before: unboundSocket, do: func(*order) (string, error) {
		return "", unix.Sendto(kept, []byte("x"), 0, &unix.SockaddrUnix{Name: "@nobody"})
	}},
	"receive a descriptor": {errno: unix.EPERM, privileged: true, before: unboundSocket, do: func(*order) (string, error) {
		_, _, _, _, err := unix.Recvmsg(kept, nil, make([]byte, 64), unix.MSG_DONTWAIT)
		return "", err
	}},
	"ask the kernel (netlink)": {errno: unix.EPERM, do: func(*order) (string, error) { _, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0); return "", err }},

	// The kernel.
	"mount":                    {killed: true, privileged: true, do: func(o *order) (string, error) { return "", unix.Mount("none", o.Allowed, "tmpfs", 0, "") }},
	"leave namespaces":         {killed: true, privileged: true, do: func(*order) (string, error) { return "", unix.Unshare(unix.CLONE_NEWUSER) }},
	"load programs (bpf)":      {killed: true, privileged: true, do: func(*order) (string, error) { return "", call(unix.SYS_BPF, 0, 0, 0) }},
	"count events (perf)":      {killed: true, privileged: true, do: func(*order) (string, error) { return "", call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0) }},
	"queue calls (io_uring)":   {killed: true, privileged: true, do: func(*order) (string, error) { return "", call(unix.SYS_IO_URING_SETUP, 0, 0) }},
	"handle faults":            {killed: true, privileged: true, do: func(*order) (string, error) { return "", call(unix.SYS_USERFAULTFD, 0) }},
	"keep keys":                {killed: true, privileged: true, do: func(*order) (string, error) { return "", call(unix.SYS_KEYCTL, 0, 0) }},
	"change the root":          {killed: true, privileged: true, do: func(o *order) (string, error) { return "", unix.Chroot(o.Allowed) }},
	"load a module":            {killed: true, privileged: true, do: func(*order) (string, error) { return "", call(unix.SYS_FINIT_MODULE, 0, 0, 0) }},
	"restart the machine":      {killed: true, privileged: true, do: func(*order) (string, error) { return "", call(unix.SYS_REBOOT, 0, 0, 0) }},
	"set the clock":            {killed: true, privileged: true, do: func(*order) (string, error) { return "", call(unix.SYS_CLOCK_SETTIME, 0, 0) }},
	"a call of the future":     {errno: unix.ENOSYS, privileged: true, do: func(*order) (string, error) { return "", call(1000) }},
	"a thread by a newer call": {errno: unix.ENOSYS, privileged: true, do: func(*order) (string, error) { return "", call(unix.SYS_CLONE3, 0, 0) }},

	// What other tests need.
	"nothing":      {other: true, do: func(*order) (string, error) { return "", nil }},
	"much memory":  {other: true, do: muchMemory},
	"much reserve": {other: true, do: muchReserve},
	"much CPU": {other: true, do: func(*order) (string, error) {
		for {
			_ = rand.Text()
		}
	}}, //nolint:revive // until it is ended
	"a large file": {other: true, do: func(o *order) (string, error) {
		return "", os.WriteFile(filepath.Join(o.Allowed, "large"), make([]byte, 2<<20), 0o600)
	}},
	"many files": {other: true, do: manyFiles},
	"crash":      {other: true, do: func(o *order) (string, error) { return "", crash(o) }},
	"status":     {other: true, do: func(*order) (string, error) { return read("/proc/self", "status") }},
	"run true":   {other: true, do: func(*order) (string, error) { return "", exec.Command("/bin/true").Run() }},
	"listen unix": {other: true, do: func(o *order) (string, error) {
		_, err := net.Listen("unix", filepath.Join(o.Allowed, "sock"))
		return "", err
	}},
	"set times": {other: true, do: func(o *order) (string, error) {
		return "", os.Chtimes(filepath.Join(o.Allowed, "file"), time.Now(), time.Now())
	}},
	"all threads": {other: true, do: allThreads},

	"take private memory":       {other: true, do: taking(privateMemory)},
	"take memory and freeze it": {other: true, do: taking(frozenMemory)},
	"take memory and run it":    {other: true, do: taking(runnableMemory)},
	"take shared memory":        {other: true, do: taking(sharedMemory)},
	"take files in memory":      {other: true, do: taking(memoryFiles)},
	"take all there is":         {other: true, before: openMemory, do: everything},
	"fill many pipes":           {other: true, do: manyPipes},
	"oom score":                 {other: true, do: func(*order) (string, error) { return read("/proc/self", "oom_score_adj") }},
	"oom score of a program": {other: true, do: func(*order) (string, error) {
		out, err := exec.Command("/bin/cat", "/proc/self/oom_score_adj").Output()
		return string(out), err
	}},
}
