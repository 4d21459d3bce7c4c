//go:build unix

package wasiabi_test

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// TestSwappedLink races a directory that becomes a link out of the mount, and
// back, against opening a file in it.
func TestSwappedLink(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	tree(t, above, map[string]string{"dir/secret": "canary", "mount/d/secret": "mine", "mount/link": "->../dir"})
	b := newBox(t, wasiabi.Config{Mounts: []wasiabi.Mount{{Host: above + "/mount", Guest: "/"}}})
	done := swap(t, above+"/mount", "d", "link")
	defer done()
	for range 3000 {
		fd, e := b.open(mountFD, "d/secret", opening{})
		if e != wasiabi.OK {
			continue
		}
		if got, _ := b.read(fd, 10); got != "mine" {
			t.Fatalf("read %q", got)
		}
		b.must("fd_close", uint64(fd))
	}
}

// TestSwappedFIFO: what was a file when it was checked must not block when it is opened.
func TestSwappedFIFO(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{})
	tree(t, dir, map[string]string{"f": "mine"})
	if err := syscall.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	done := swap(t, dir, "f", "fifo")
	defer done()
	for i := range 3000 {
		fd, e := b.open(mountFD, "f", opening{rights: []uint64{readOnly, allRights &^ readRight, allRights}[i%3]})
		if e != wasiabi.OK {
			continue
		}
		b.must("fd_filestat_get", uint64(fd), 4096)
		if kind := b.memory.b[4096+16]; kind != 4 {
			t.Fatalf("opened a file of type %d", kind)
		}
		b.must("fd_close", uint64(fd))
	}
}

// swap repeatedly exchanges what two names in a directory refer to, until it is
// stopped.
func swap(t *testing.T, dir, a, b string) (end func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			for _, step := range [][2]string{{a, "kept"}, {b, a}, {a, b}, {"kept", a}} {
				if err := os.Rename(filepath.Join(dir, step[0]), filepath.Join(dir, step[1])); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}
