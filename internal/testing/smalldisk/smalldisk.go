// Package smalldisk gives tests a real disk that can fill up: a tmpfs of a few MB.
package smalldisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// New mounts a file system of a given size in a folder of the test's, and returns
// the folder. It skips the test if that is not permitted, since it takes root.
func New(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	mount := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=0700", bytes), "tmpfs", dir)
	if out, err := mount.CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here, which needs root: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.CommandContext(context.Background(), "umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}

// Fill uses up the free space on the disk of a folder, and returns a function that
// frees it.
func Fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Eat(f), f.Close()); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		filler, err := os.Stat(path)
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		awaitRoom(t, path, filler.Size()/4) // the rest may be taken at once
	}
}

// awaitRoom waits until the room of a removed file can be used: tmpfs counts what is free
// for each processor, and a write right after may still find none.
func awaitRoom(t *testing.T, path string, bytes int64) {
	t.Helper()
	const tries = 10_000
	for range tries {
		err := os.WriteFile(path, make([]byte, bytes), 0o600)
		if removed := os.Remove(path); err == nil && removed == nil {
			return
		}
		runtime.Gosched()
	}
	t.Fatal("the disk has no room although its filler was removed")
}

// Eat writes to a file until nothing more fits on its disk.
func Eat(f *os.File) error {
	for chunk := 1 << 20; chunk > 0; chunk /= 2 {
		for {
			if _, err := f.Write(make([]byte, chunk)); errors.Is(err, syscall.ENOSPC) {
				break
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}
