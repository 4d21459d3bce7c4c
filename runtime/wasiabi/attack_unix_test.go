//go:build unix

package wasiabi_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// TestSpecialFiles: what isn't a file or directory is neither waited for nor opened.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{Mounts: []wasiabi.Mount{{Host: "/dev", Guest: "/dev", ReadOnly: true}}})
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []opening{{}, {rights: readOnly}, {rights: writeRight}, {oflags: create}, {oflags: truncate}} {
		b.wantOpen(wasiabi.EPERM, "fifo", o)
	}
	b.wantOpen(wasiabi.ENOTDIR, "fifo/.", opening{rights: readOnly})
	for _, device := range []string{"null", "zero", "tty"} {
		if _, e := b.open(mountFD+1, device, opening{rights: readOnly}); e != wasiabi.EPERM {
			t.Errorf("%s: errno %d", device, e)
		}
	}
}
