package wasiabi

import (
	"encoding/binary"
	"io/fs"
	"math"
	"os"
	"time"
)

func statFunctions() []Function {
	return []Function{
		define("fd_filestat_get", "fd stat", fdFilestatGet),
		define("fd_filestat_set_size", "fd size:i64", fdFilestatSetSize),
		define("fd_filestat_set_times", "fd atim:i64 mtim:i64 flags", fdFilestatSetTimes),
		define("path_filestat_get", "fd flags path path_len stat", pathFilestatGet),
		define("path_filestat_set_times", "fd flags path path_len atim:i64 mtim:i64 fst_flags", pathFilestatSetTimes),
	}
}

// followFlag follows a link at the end of a path. There are no other lookup flags.
const followFlag = 1

// statSize is the size of a filestat.
const statSize = 64

// fd_filestat_get(fd, stat) describes what a descriptor refers to.
func fdFilestatGet(s *System, m memory, a args) Errno {
	d, e := s.get(a.u32(0), fdStatRight)
	if e != OK {
		return e
	}
	b, e := m.view(a.u32(1), statSize)
	if e != OK {
		return e
	}
	var info fs.FileInfo
	var err error
	switch d.kind {
	case regular:
		info, err = d.file.Stat()
	case directory:
		info, err = d.dir.root.Stat(".")
	default:
		clear(b)
		b[16] = byte(s.filetype(d))
		return OK
	}
	if err == nil {
		putStat(b, info)
	}
	return errnoOf(err)
}

// path_filestat_get(fd, flags, path, path_len, stat) describes a file.
func pathFilestatGet(s *System, m memory, a args) Errno {
	d, e := s.dir(a.u32(0), pathStatRight)
	if e != OK {
		return e
	}
	if a.u32(1) > followFlag {
		return EINVAL
	}
	name, e := m.path(a.u32(2), a.u32(3))
	if e != OK {
		return e
	}
	b, e := m.view(a.u32(4), statSize)
	if e != OK {
		return e
	}
	info, err := stat(d.dir.root, name, a.u32(1) == followFlag)
	if err == nil {
		putStat(b, info)
	}
	return errnoOf(err)
}

func stat(root *os.Root, name string, follow bool) (fs.FileInfo, error) {
	if follow {
		return root.Stat(name)
	}
	return root.Lstat(name)
}

func putStat(b []byte, info fs.FileInfo) {
	st := statOf(info)
	clear(b)
	put := binary.LittleEndian.PutUint64
	put(b, st.dev)
	put(b[8:], st.ino)
	b[16] = byte(typeOf(info.Mode()))
	put(b[24:], st.links)
	put(b[32:], uint64(max(info.Size(), 0)))
	put(b[40:], timestamp(st.read))
	put(b[48:], timestamp(info.ModTime()))
	put(b[56:], timestamp(st.changed))
}

// status is what an [fs.FileInfo] doesn't contain.
type status struct {
	dev, ino, links uint64
	read, changed   time.Time
}

func typeOf(mode fs.FileMode) filetype {
	switch mode.Type() {
	case 0:
		return regularType
	case fs.ModeDir:
		return directoryType
	case fs.ModeSymlink:
		return linkType
	case fs.ModeDevice:
		return blockType
	case fs.ModeDevice | fs.ModeCharDevice:
		return characterType
	case fs.ModeSocket:
		return socketType
	}
	return unknownType
}

// timestamp returns nanoseconds since 1970; earlier times become 0.
func timestamp(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) }

// fd_filestat_set_size(fd, size) truncates or extends a file.
func fdFilestatSetSize(s *System, _ memory, a args) Errno {
	d, e := s.regular(a.u32(0), fdSetSizeRight)
	if e != OK {
		return e
	}
	size := int64(a.u64(1))
	if size < 0 {
		return EINVAL
	}
	if e := s.extend(d.file, size); e != OK {
		return e
	}
	// The position may now be beyond the end, so the next write must check.
	d.jumped = true
	return errnoOf(d.file.Truncate(size))
}

// fd_filestat_set_times(fd, atim, mtim, flags) sets the times of a file or directory.
func fdFilestatSetTimes(s *System, _ memory, a args) Errno {
	d, e := s.get(a.u32(0), fdSetTimesRight)
	if e != OK {
		return e
	}
	read, written, e := times(a.u64(1), a.u64(2), a.u32(3))
	switch {
	case e != OK:
		return e
	case d.kind == directory:
		return errnoOf(d.dir.root.Chtimes(".", read, written))
	}
	return errnoOf(setTimes(d.file, read, written))
}

// path_filestat_set_times(fd, flags, path, path_len, atim, mtim, fst_flags)
// sets the times of a file, directory or link.
func pathFilestatSetTimes(s *System, m memory, a args) Errno {
	d, e := s.dir(a.u32(0), pathSetTimesRight)
	if e != OK {
		return e
	}
	if a.u32(1) > followFlag {
		return EINVAL
	}
	name, e := m.path(a.u32(2), a.u32(3))
	if e != OK {
		return e
	}
	read, written, e := times(a.u64(4), a.u64(5), a.u32(6))
	if e != OK {
		return e
	}
	if a.u32(1) != followFlag {
		info, err := d.dir.root.Lstat(name)
		if err != nil {
			return errnoOf(err)
		}
		if info.Mode().Type() == fs.ModeSymlink {
			return errnoOf(setLinkTimes(d.dir.root, name, read, written))
		}
	}
	return errnoOf(d.dir.root.Chtimes(name, read, written))
}

// Flags that say which times to set, and to what.
const (
	atimFlag = 1 << iota
	atimNowFlag
	mtimFlag
	mtimNowFlag
	allTimeFlags = 1<<iota - 1
)

// times returns the times to set; the zero time = leave it.
func times(atim, mtim uint64, flags uint32) (read, written time.Time, e Errno) {
	if flags > allTimeFlags ||
		flags&(atimFlag|atimNowFlag) == atimFlag|atimNowFlag || flags&(mtimFlag|mtimNowFlag) == mtimFlag|mtimNowFlag ||
		flags&atimFlag != 0 && atim > math.MaxInt64 || flags&mtimFlag != 0 && mtim > math.MaxInt64 {
		return read, written, EINVAL
	}
	now := time.Now()
	choose := func(t uint64, exact, current bool) time.Time {
		switch {
		case exact:
			return time.Unix(0, int64(t))
		case current:
			return now
		}
		return time.Time{}
	}
	read = choose(atim, flags&atimFlag != 0, flags&atimNowFlag != 0)
	written = choose(mtim, flags&mtimFlag != 0, flags&mtimNowFlag != 0)
	return read, written, OK
}
