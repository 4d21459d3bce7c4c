package confine_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func read(dir, name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, name))
	return string(data), err
}

func open(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func call(number uintptr, arguments ...uintptr) error {
	var a [3]uintptr
	copy(a[:], arguments)
	if _, _, errno := unix.RawSyscall(number, a[0], a[1], a[2]); errno != 0 {
		return errno
	}
	return nil
}

func change(o *order) (string, error) {
	dir := filepath.Join(o.Allowed, "a")
	return "", errors.Join(
		os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "b"), []byte("x"), 0o600), os.Symlink("b", filepath.Join(dir, "c")),
		os.Rename(filepath.Join(dir, "b"), filepath.Join(o.Allowed, "d")), open(filepath.Join(o.Allowed, "d")), os.RemoveAll(dir),
	)
}

func cache(o *order) (string, error) {
	f, err := os.CreateTemp(o.Allowed, "module")
	if err != nil {
		return "", err
	}
	_, err = f.Write(make([]byte, 1<<20))
	return "", errors.Join(err, f.Sync(), f.Close(), os.Rename(f.Name(), filepath.Join(o.Allowed, "module")))
}

func byRoot(o *order) (string, error) {
	root, err := os.OpenRoot(o.Allowed)
	if err != nil {
		return "", err
	}
	return "", errors.Join(root.MkdirAll("x/y", 0o700), root.WriteFile("x/y/z", []byte("x"), 0o600), root.RemoveAll("x"), root.Close())
}

func executable(*order) (string, error) {
	b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return "", err
	}
	return "", errors.Join(unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE), unix.Mprotect(b, unix.PROT_READ|unix.PROT_EXEC), unix.Madvise(b, unix.MADV_DONTNEED), unix.Munmap(b))
}

// threads starts some threads, which stay until the returned function is called.
func threads() (stop func()) {
	end := make(chan struct{})
	var running sync.WaitGroup
	for range 8 {
		begun := make(chan struct{})
		running.Go(func() {
			runtime.LockOSThread() // so that the thread ends, too
			close(begun)
			<-end
		})
		<-begun
	}
	return func() { close(end); running.Wait() }
}

func collect() {
	var kept [][]byte
	for range 64 {
		kept = append(kept, make([]byte, 1<<20))
		runtime.GC()
	}
	runtime.KeepAlive(kept)
}

// What a child has opened before it confined itself.
var (
	kept     int
	listener net.Listener
	dialled  net.Conn
)

func listenUnix(o *order) {
	var err error
	path := filepath.Join(o.Outside, "s")
	if listener, err = net.Listen("unix", path); err != nil {
		panic(err)
	}
	if dialled, err = net.Dial("unix", path); err != nil {
		panic(err)
	}
}

func accept(*order) (string, error) {
	c, err := listener.Accept()
	if err != nil {
		return "", err
	}
	_, err = dialled.Write([]byte("hello"))
	got := make([]byte, 5)
	_, readErr := c.Read(got)
	buffers := net.Buffers{[]byte("a"), []byte("b")}
	_, writeErr := buffers.WriteTo(c)
	return string(got), errors.Join(err, readErr, writeErr, c.SetDeadline(time.Now().Add(time.Second)), c.Close(), dialled.Close())
}

func openPageMap(*order) {
	var err error
	if kept, err = unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		panic(err)
	}
}

func scan(*order) (string, error) {
	_, err := unix.Pread(kept, make([]byte, 8), 0)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(kept), 0xc0606610, 0)
	if errno != unix.EFAULT && errno != unix.ENOTTY { // older kernels lack it
		err = errors.Join(err, fmt.Errorf("scan: %w", errno))
	}
	return "", err
}

func absent(o *order) error {
	if _, err := os.Stat(filepath.Join(o.Allowed, "absent")); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("it is there: %w", err)
	}
	return nil
}

func pipes(*order) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	_, err = w.WriteString("x")
	_, readErr := r.Read(make([]byte, 1))
	return "", errors.Join(err, readErr, r.SetDeadline(time.Now()), r.Close(), w.Close())
}

func byLink(o *order) (string, error) {
	link := filepath.Join(o.Allowed, "link")
	if err := os.Symlink(filepath.Join(o.Outside, "file"), link); err != nil {
		return "", err
	}
	return read(o.Allowed, "link")
}

func startProgram(*order) (string, error) {
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	if err != nil {
		return "", err
	}
	_, err = p.Wait()
	return "", err
}

func becomeProgram(*order) (string, error) {
	return "", syscall.Exec("/bin/sh", []string{"sh", "-c", "echo '{}'"}, nil)
}

func fork(*order) (string, error) {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	switch {
	case errno != 0:
		return "", errno
	case pid == 0:
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return "", err
}

func readParent(o *order) (string, error) {
	b := make([]byte, 8)
	_, err := unix.ProcessVMReadv(o.Parent, []unix.Iovec{{Base: &b[0], Len: 8}}, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&b[0])), Len: 8}}, 0)
	return "", err
}

func raise(*order) (string, error) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &r); err != nil {
		return "", err
	}
	return "", unix.Setrlimit(unix.RLIMIT_CPU, &r)
}

func connect(o *order) (string, error) {
	c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", o.Port))
	if err != nil {
		return "", err
	}
	return "", c.Close()
}

func unboundSocket(*order) {
	var err error
	if kept, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0); err != nil {
		panic(err)
	}
	_ = unix.Close(kept)
	if kept, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); err != nil {
		panic(err)
	}
	if err := unix.Bind(kept, &unix.SockaddrUnix{Name: "@" + rand.Text()}); err != nil {
		panic(err)
	}
}

func connectKept(*order) (string, error) {
	return "", unix.Connect(kept, &unix.SockaddrUnix{Name: "@nobody"})
}

// listen returns a port with a listener.
func listen(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}
