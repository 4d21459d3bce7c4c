package wasiabi

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func statOf(info fs.FileInfo) status {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return status{links: 1, read: info.ModTime(), changed: info.ModTime()}
	}
	return status{
		dev: st.Dev, ino: st.Ino, links: uint64(st.Nlink), //nolint:unconvert // 32 bits on arm64
		read: time.Unix(st.Atim.Unix()), changed: time.Unix(st.Ctim.Unix()),
	}
}

// setTimes sets the times of an open file; a zero time is left unchanged.
func setTimes(f *os.File, read, written time.Time) error {
	ts := []unix.Timespec{timespec(read), timespec(written)}
	return control(f, func(fd int) error { return unix.UtimesNanoAt(fd, "", ts, unix.AT_EMPTY_PATH) })
}

// setLinkTimes sets the times of a link, which O_PATH opens itself.
func setLinkTimes(root *os.Root, name string, read, written time.Time) error {
	link, err := root.OpenFile(name, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer link.Close()
	return setTimes(link, read, written)
}

func timespec(t time.Time) unix.Timespec {
	if t.IsZero() {
		return unix.Timespec{Nsec: unix.UTIME_OMIT}
	}
	return unix.NsecToTimespec(t.UnixNano())
}

// allocate reserves room for a range of a file, which grows if necessary.
func allocate(f *os.File, offset, n int64) error {
	return control(f, func(fd int) error { return unix.Fallocate(fd, 0, offset, n) })
}
