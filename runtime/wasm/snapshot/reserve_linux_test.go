package snapshot

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReserve makes images in files that were opened before.
func TestReserve(t *testing.T) { // not parallel: it looks at what the package keeps
	const most = 4 * PageBytes
	if err := Reserve(2, most); err != nil {
		t.Fatal(err)
	}
	ready := slices.Clone(files.fds)
	for _, fd := range ready {
		if err := unix.Ftruncate(fd, most+1); err == nil {
			t.Error("a file can become larger")
		}
	}

	small := testImage(t, bytes.Repeat([]byte{7}, PageBytes))
	if !slices.Contains(ready, small.stored.fd) || len(files.fds) != 1 {
		t.Fatalf("the image is in %d, the files were %v", small.stored.fd, ready)
	}
	m := testMemory(t, most, small, bestMethod())
	if m.Reallocate(2 * PageBytes)[0] != 7 || !isZeros(m.Bytes()[PageBytes:]) {
		t.Error("the memory is not as the image")
	}
	if _, err := unix.Pwrite(small.stored.fd, []byte{2}, 0); err == nil {
		t.Error("the image can be written")
	}

	// One that is too large doesn't take a file, and one that can't be filled gives it back, empty.
	if large := testImage(t, bytes.Repeat([]byte{7}, 2*most)); slices.Contains(ready, large.stored.fd) || len(files.fds) != 1 {
		t.Error("a larger image is in a file that can't hold it")
	}
	failed := files.fds[0]
	fd, err := files.take(most)
	if err != nil || fd != failed {
		t.Fatal(fd, err)
	}
	if _, err := unix.Pwrite(fd, []byte("left"), 0); err != nil {
		t.Fatal(err)
	}
	files.giveUp(fd)
	again := testImage(t, make([]byte, most))
	if again.stored.fd != failed {
		t.Fatal("the file was not kept")
	}
	got := make([]byte, 4)
	if _, err := unix.Pread(failed, got, 0); err != nil || !isZeros(got) {
		t.Errorf("%q, %v: something of the failed image is left", got, err)
	}
	if len(files.fds) != 0 {
		t.Error("a file is left")
	}
	if next := testImage(t, make([]byte, most)); slices.Contains(ready, next.stored.fd) {
		t.Error("a file has two images")
	}
}
