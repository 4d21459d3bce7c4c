//go:build linux && (amd64 || arm64)

package confine

import (
	"os"

	"golang.org/x/sys/unix"
)

// newestCall is the last one that these lists know.
const newestCall = unix.SYS_RSEQ_SLICE_YIELD

// sandboxList allows what Go, wazero and gRPC over an existing connection need.
func sandboxList(c Config) []unix.SockFilter {
	self := []uint32{uint32(os.Getpid())}
	p := newProgram()
	// Shared memory isn't counted as the process's data, nor are stacks that grow automatically; and huge pages
	// are the machine's.
	p.when(unix.SYS_MMAP, refuse, check{argument: 3, mask: unix.MAP_TYPE | unix.MAP_GROWSDOWN | unix.MAP_HUGETLB, values: []uint32{unix.MAP_PRIVATE}})
	p.calls(allow, plainCalls...)
	p.calls(allow, plainCallsHere...)
	// Pages of files that are spliced to pipes and sockets stay in memory without counting towards any limit. Go copies
	// instead.
	p.calls(unfit, unix.SYS_SPLICE, unix.SYS_SENDFILE)
	if c.SetTimes {
		p.calls(allow, unix.SYS_UTIMENSAT)
	}
	p.calls(kill, adminCalls...)
	p.calls(kill, adminCallsHere...)
	p.calls(kill, intrusiveCalls...)
	p.calls(kill, programCalls...)
	p.calls(kill, programCallsHere...)
	// The C library and Go fall back to clone, whose flags can be checked: a thread, in the same namespaces.
	p.calls(unknown, unix.SYS_CLONE3)
	const apart = unix.CLONE_NEWCGROUP | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUSER | unix.CLONE_NEWUTS
	p.when(unix.SYS_CLONE, kill, check{argument: 0, mask: unix.CLONE_THREAD | apart, values: []uint32{unix.CLONE_THREAD}})
	p.when(unix.SYS_TGKILL, refuse, check{argument: 0, values: self})
	p.when(unix.SYS_KILL, refuse, check{argument: 0, values: self})
	p.when(unix.SYS_PRLIMIT64, refuse, check{argument: 0, values: append([]uint32{0}, self...)}, check{argument: 2, null: true})
	p.when(unix.SYS_PRCTL, refuse, check{argument: 0, values: []uint32{unix.PR_SET_VMA, unix.PR_SET_NAME, unix.PR_GET_NAME}})
	p.when(unix.SYS_IOCTL, refuse, check{argument: 1, values: []uint32{pagemapScan}})
	p.when(unix.SYS_FCNTL, refuse, check{argument: 1, values: descriptorCommands})
	return p.finish(refuse)
}

// programList allows everything except what is for administrators, debuggers and attackers.
func programList(c Config) []unix.SockFilter {
	p := newProgram()
	p.calls(refuse, adminCalls...)
	p.calls(refuse, adminCallsHere...)
	p.calls(refuse, intrusiveCalls...)
	p.when(unix.SYS_MMAP, refuse, check{argument: 3, mask: unix.MAP_GROWSDOWN, values: []uint32{0}}) // which counts towards no limit
	if c.NoNetwork {
		for _, call := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
			p.when(call, refuse, check{argument: 0, values: []uint32{unix.AF_UNIX}})
		}
	}
	return p.finish(allow)
}

// pagemapScan is the ioctl that finds written pages: see package snapshot.
const pagemapScan = 0xc0606610

// descriptorCommands are the commands of fcntl that concern descriptors and seals. Excluded are those that make a
// descriptor send signals to any process, and those for which the kernel needs memory: locks of parts of files, and
// larger pipes.
var descriptorCommands = []uint32{
	unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
	unix.F_ADD_SEALS, unix.F_GET_SEALS, unix.F_GETPIPE_SZ,
}

// plainCalls are allowed with any arguments. Landlock judges those that name files.
var plainCalls = []uint32{
	// time and threads, the most frequent first
	unix.SYS_FUTEX, unix.SYS_EPOLL_PWAIT, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_GETTIME,
	unix.SYS_CLOCK_GETRES, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_GETTIMEOFDAY, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_GET_ROBUST_LIST, unix.SYS_SET_TID_ADDRESS, unix.SYS_RSEQ, unix.SYS_MEMBARRIER,
	unix.SYS_GETCPU, unix.SYS_RESTART_SYSCALL, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	// memory; mmap depends on its flags. Without memfd_create the only files in memory are those opened before.
	unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_MREMAP, unix.SYS_MINCORE, unix.SYS_BRK,
	unix.SYS_GETRANDOM,
	// signals to itself
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGTIMEDWAIT,
	unix.SYS_RT_SIGSUSPEND, unix.SYS_SIGALTSTACK,
	// itself
	unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETTID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID,
	unix.SYS_GETRLIMIT, unix.SYS_GETRUSAGE, unix.SYS_TIMES, unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETCWD,
	// descriptors, and existing connections
	unix.SYS_CLOSE, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2, unix.SYS_EVENTFD2, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL,
	unix.SYS_EPOLL_PWAIT2, unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_ACCEPT4, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME,
	unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT, unix.SYS_SHUTDOWN,
	// contents of files
	unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_PREADV, unix.SYS_PWRITEV, unix.SYS_PREADV2,
	unix.SYS_PWRITEV2, unix.SYS_LSEEK, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FADVISE64, unix.SYS_FSYNC,
	unix.SYS_FDATASYNC, unix.SYS_FLOCK, unix.SYS_COPY_FILE_RANGE,
	// files
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_FSTAT, unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_STATFS, unix.SYS_FSTATFS,
	unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT, unix.SYS_GETDENTS64, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT,
	unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT,
}

// programCalls start programs; sandboxes never do.
var programCalls = []uint32{unix.SYS_EXECVE, unix.SYS_EXECVEAT}

// intrusiveCalls affect other processes, or reach large and new parts of the kernel.
var intrusiveCalls = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
	unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
}

// adminCalls are for administering the machine.
var adminCalls = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_QUOTACTL,
	unix.SYS_QUOTACTL_FD, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME,
	unix.SYS_SETDOMAINNAME, unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE,
}
