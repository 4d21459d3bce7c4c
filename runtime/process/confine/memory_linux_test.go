package confine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/jobhost/jobhost/runtime/process/confine"
)

// What a process tries to take in these tests, block by block, is three times what it may.
const (
	block    = 16 << 20
	mayTake  = 128 << 20
	wantTake = 3 * mayTake
)

// taker takes a block of memory, uses all of it and doesn't give it back.
type taker func() error

// taking takes memory until there is no more, or enough, and says how much that was.
func taking(take taker) func(*order) (string, error) {
	return func(*order) (string, error) {
		taken, err := takeAll(take, wantTake)
		return strconv.Itoa(taken), err
	}
}

func takeAll(take taker, most int) (taken int, err error) {
	for taken < most {
		if err := take(); err != nil {
			return taken, err
		}
		taken += block
	}
	return taken, nil
}

// mapped maps a block and writes to each page.
func mapped(fd, flags int) ([]byte, error) {
	b, err := unix.Mmap(fd, 0, block, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, err
	}
	for at := 0; at < len(b); at += os.Getpagesize() {
		b[at] = 1
	}
	return b, nil
}

func mapping(flags int) taker {
	return func() error { _, err := mapped(-1, flags|unix.MAP_ANON); return err }
}

var (
	privateMemory = mapping(unix.MAP_PRIVATE)
	sharedMemory  = mapping(unix.MAP_SHARED)
	checkedMemory = mapping(unix.MAP_SHARED_VALIDATE)
	growingStack  = mapping(unix.MAP_PRIVATE | unix.MAP_GROWSDOWN)
	largePages    = mapping(unix.MAP_PRIVATE | unix.MAP_HUGETLB)
)

// frozenMemory is not the process's data any more once it can't be written.
func frozenMemory() error {
	b, err := mapped(-1, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	return unix.Mprotect(b, unix.PROT_READ)
}

// runnableMemory is counted as code.
func runnableMemory() error {
	b, err := mapped(-1, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	return unix.Mprotect(b, unix.PROT_READ|unix.PROT_EXEC)
}

func memoryFiles() error {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, make([]byte, block))
	return err
}

// openMemory is what a process does that needs a file in memory later: it can't become larger.
func openMemory(*order) {
	var err error
	if kept, err = unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING); err != nil {
		panic(err)
	}
	if err := unix.Ftruncate(kept, block); err != nil {
		panic(err)
	}
	if _, err := unix.FcntlInt(uintptr(kept), unix.F_ADD_SEALS, unix.F_SEAL_GROW); err != nil {
		panic(err)
	}
}

func sealed(*order) (string, error) {
	_, sealErr := unix.FcntlInt(uintptr(kept), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
	b, err := unix.Mmap(kept, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	return "", errors.Join(sealErr, err, unix.Munmap(b), unix.Close(kept))
}

func growMemory(*order) (string, error) { return "", unix.Ftruncate(kept, 2*block) }

func sharedFile() error { _, err := mapped(kept, unix.MAP_SHARED); return err }

func byKey(*order) (string, error) {
	return "", call(unix.SYS_SHMGET, unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
}

func largerPipe(*order) (string, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return "", err
	}
	_, err := unix.FcntlInt(uintptr(ends[1]), unix.F_SETPIPE_SZ, 1<<20)
	if err != nil {
		// Other pipes of the same user may leave no room for a larger one. The command itself is what is
		// forbidden, and without that a pipe can always be made smaller.
		_, err = unix.FcntlInt(uintptr(ends[1]), unix.F_SETPIPE_SZ, 4096)
	}
	return "", err
}

func splice(o *order) (string, error) {
	from, err := os.Open(filepath.Join(o.Allowed, "file"))
	if err != nil {
		return "", err
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return "", err
	}
	_, err = unix.Splice(int(from.Fd()), nil, ends[1], nil, 1, 0)
	return "", err
}

func givePages(*order) (string, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return "", err
	}
	page := make([]byte, os.Getpagesize())
	_, err := unix.Vmsplice(ends[1], []unix.Iovec{{Base: unsafe.SliceData(page), Len: uint64(len(page))}}, 0)
	return "", err
}

func lockParts(o *order) (string, error) {
	file, err := os.OpenFile(filepath.Join(o.Allowed, "file"), os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	for at := range int64(100) {
		if err := unix.FcntlFlock(file.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: 2 * at, Len: 1}); err != nil {
			return "", err
		}
	}
	return "", nil
}

// manyPipes fills as many pipes as there may be.
func manyPipes(*order) (string, error) {
	taken := 0
	for taken < wantTake {
		var ends [2]int
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			return strconv.Itoa(taken), err
		}
		for {
			n, err := unix.Write(ends[1], make([]byte, 4096))
			if err != nil {
				break
			}
			taken += n
		}
	}
	return strconv.Itoa(taken), nil
}

// everything takes what it can in each way that there is, one after the other, and keeps it.
func everything(*order) (string, error) {
	sum := 0
	var last error
	for _, take := range []taker{
		runnableMemory, frozenMemory, privateMemory, sharedMemory, checkedMemory, growingStack, largePages, memoryFiles, sharedFile,
	} {
		taken, err := takeAll(take, wantTake)
		sum, last = sum+taken, err
		if err == nil {
			break
		}
	}
	return strconv.Itoa(sum), last
}

// TestMemoryAttacks: all that the system calls can take is bounded by the limit of address space.
func TestMemoryAttacks(t *testing.T) {
	t.Parallel()
	needs(t, confine.Available())
	for _, test := range []struct {
		name  string
		errno syscall.Errno
		most  int
	}{
		{"take private memory", unix.ENOMEM, mayTake},
		{"take memory and freeze it", unix.ENOMEM, 2 * mayTake},
		{"take memory and run it", unix.ENOMEM, 2 * mayTake},
		{"take shared memory", unix.EPERM, 0},
		{"take files in memory", unix.EPERM, 0},
		{"take all there is", unix.EPERM, 2 * mayTake},
		{"fill many pipes", unix.EMFILE, 100 << 16},
	} {
		t.Run(test.name, func(t *testing.T) { // one after the other: each takes much
			o := sandbox()
			o.Config.Limits = confine.Limits{OpenFiles: 200, Raisable: true}
			o.MoreData, o.MoreSpace = mayTake, 2*mayTake
			a, state := run(t, test.name, o)
			taken, _ := strconv.Atoi(a.Said)
			if !state.Success() || a.Errno != test.errno || taken > test.most {
				t.Errorf("%v: it took %d MiB, %v (%s), want at most %d MiB and %v", state, taken>>20, a.Errno, a.Error, test.most>>20, test.errno)
			}
			// Without the wall it takes more, so the tests say something.
			a, state = run(t, test.name, order{})
			if taken, _ := strconv.Atoi(a.Said); !state.Success() || taken <= test.most {
				t.Errorf("unconfined: %v: it took %d MiB, %v (%s)", state, taken>>20, a.Errno, a.Error)
			}
		})
	}
}

// TestDataIsNotEnough shows why there is a limit of address space.
func TestDataIsNotEnough(t *testing.T) {
	t.Parallel()
	a, _ := run(t, "take memory and freeze it", order{MoreData: mayTake})
	if taken, _ := strconv.Atoi(a.Said); taken < wantTake {
		t.Errorf("it took %d MiB, %v: the kernel counts what was written", taken>>20, a.Error)
	}
}

// TestEndFirst: the kernel ends the process before others, and what it starts.
func TestEndFirst(t *testing.T) {
	t.Parallel()
	for _, calls := range []confine.Calls{confine.AllCalls, confine.ProgramCalls, confine.SandboxCalls} {
		a, state := run(t, "oom score", order{Config: confine.Config{EndFirst: true, Calls: calls}})
		if !state.Success() || strings.TrimSpace(a.Said) != "1000" {
			t.Errorf("calls %d: %v: %q %s", calls, state, a.Said, a.Error)
		}
	}
	a, _ := run(t, "oom score of a program", order{Config: confine.Config{EndFirst: true, Calls: confine.ProgramCalls}})
	if strings.TrimSpace(a.Said) != "1000" {
		t.Errorf("a program that it starts has %q: %s", a.Said, a.Error)
	}
	if a, _ := run(t, "oom score", order{}); strings.TrimSpace(a.Said) == "1000" {
		t.Error("a process that asks for nothing is ended first")
	}
}

func TestMemoryOf(t *testing.T) {
	t.Parallel()
	before, err := confine.MemoryOf("self")
	if err != nil {
		t.Fatal(err)
	}
	if before.Data < 1<<20 || before.AddressSpace <= before.Data {
		t.Errorf("it has %+v", before)
	}
	if _, err := confine.MemoryOf("4194305"); err == nil {
		t.Error("a process that can't be has memory")
	}
}
