package wasiabi

import (
	"io"
	"math"
	"os"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

func fileFunctions() []Function {
	return []Function{
		define("fd_allocate", "fd offset:i64 len:i64", fdAllocate),
		define("fd_datasync", "fd", fdDatasync),
		define("fd_pread", "fd iovs iovs_len offset:i64 nread", fdPread),
		define("fd_pwrite", "fd iovs iovs_len offset:i64 nwritten", fdPwrite),
		define("fd_read", "fd iovs iovs_len nread", fdRead),
		define("fd_seek", "fd offset:i64 whence newoffset", fdSeek),
		define("fd_sync", "fd", fdSync),
		define("fd_tell", "fd offset", fdTell),
		define("fd_write", "fd iovs iovs_len nwritten", fdWrite),
	}
}

// fd_read(fd, iovs, iovs_len, nread) reads what is available, 0 bytes at the end.
func fdRead(s *System, m memory, a args) Errno {
	d, e := s.get(a.u32(0), 0)
	if e != OK {
		return e
	}
	if d.kind == directory {
		return EISDIR
	}
	if d.rights&fdReadRight == 0 {
		return EBADF
	}
	return s.transfer(m, a.u32(1), a.u32(2), a.u32(3), func(v iovecs) (int, Errno) {
		if d.kind == input {
			return s.each(v, s.readInput)
		}
		return s.eachOfFile(v, func(b []byte, _ int64) (int, error) { return d.file.Read(b) })
	})
}

// fd_pread(fd, iovs, iovs_len, offset, nread) reads at an offset.
func fdPread(s *System, m memory, a args) Errno {
	d, e := s.regular(a.u32(0), fdReadRight|fdSeekRight)
	if e != OK {
		return e
	}
	offset := int64(a.u64(3))
	if offset < 0 {
		return EINVAL
	}
	return s.transfer(m, a.u32(1), a.u32(2), a.u32(4), func(v iovecs) (int, Errno) {
		return s.eachOfFile(v, func(b []byte, done int64) (int, error) {
			if offset > math.MaxInt64-done {
				return 0, io.EOF
			}
			return d.file.ReadAt(b, offset+done)
		})
	})
}

// fd_write(fd, iovs, iovs_len, nwritten) writes.
func fdWrite(s *System, m memory, a args) Errno {
	d, e := s.get(a.u32(0), fdWriteRight)
	if e != OK {
		return e
	}
	return s.transfer(m, a.u32(1), a.u32(2), a.u32(3), func(v iovecs) (int, Errno) {
		switch d.kind {
		case output:
			return s.each(v, s.writeOutput)
		case errout:
			return s.each(v, func(b []byte) (int, Errno) {
				s.err.write(s.at, b)
				return len(b), OK
			})
		}
		if d.jumped && d.flags&appendFlag == 0 {
			offset, err := d.file.Seek(0, io.SeekCurrent)
			if err != nil {
				return 0, errnoOf(err)
			}
			if e := s.extend(d.file, offset); e != OK {
				return 0, e
			}
		}
		d.jumped = false
		return s.writeFile(v, func(b []byte, _ int64) (int, error) { return d.file.Write(b) })
	})
}

// fd_pwrite(fd, iovs, iovs_len, offset, nwritten) writes at an offset, or at
// the end of a file in append mode if the host's system does that.
func fdPwrite(s *System, m memory, a args) Errno {
	d, e := s.regular(a.u32(0), fdWriteRight|fdSeekRight)
	if e != OK {
		return e
	}
	offset := int64(a.u64(3))
	if offset < 0 {
		return EINVAL
	}
	return s.transfer(m, a.u32(1), a.u32(2), a.u32(4), func(v iovecs) (int, Errno) {
		if offset > math.MaxInt64-int64(v.total) {
			return 0, EFBIG
		}
		if e := s.extend(d.file, offset); e != OK {
			return 0, e
		}
		return s.writeFile(v, func(b []byte, done int64) (int, error) { return d.file.WriteAt(b, offset+done) })
	})
}

// readInput reads the payload of a command; other guests have no input.
func (s *System) readInput(b []byte) (int, Errno) {
	if s.mode != Command {
		return 0, OK
	}
	n, err := s.at.ReadInput(b)
	if err != nil && err != io.EOF {
		return n, EIO // and the attempt fails
	}
	return n, OK
}

func (s *System) unread() int64 {
	if s.mode != Command {
		return 0
	}
	return s.at.UnreadInput()
}

// writeOutput writes to the result of a command, or logs lines.
func (s *System) writeOutput(b []byte) (int, Errno) {
	if s.mode != Command {
		s.out.write(s.at, b)
		return len(b), OK
	}
	switch s.at.AppendOutput(b) {
	case hostcall.OK:
		return len(b), OK
	case hostcall.ErrIO:
		return 0, EIO
	}
	s.refused = true
	return 0, EDQUOT
}

// extend charges for the gap that is created when a file is written at offset.
func (s *System) extend(f *os.File, offset int64) Errno {
	if s.maxWrite == 0 {
		return OK
	}
	info, err := f.Stat()
	if err != nil {
		return errnoOf(err)
	}
	return s.charge(max(offset-info.Size(), 0))
}

// fd_seek(fd, offset, whence, newoffset) sets the position of the next read or write.
func fdSeek(s *System, m memory, a args) Errno {
	d, e := s.regular(a.u32(0), fdSeekRight)
	if e != OK {
		return e
	}
	if a.u32(2) > io.SeekEnd {
		return EINVAL
	}
	if _, e := m.view(a.u32(3), 8); e != OK {
		return e
	}
	offset, err := d.file.Seek(int64(a.u64(1)), int(a.u32(2)))
	if err != nil {
		return errnoOf(err)
	}
	d.jumped = true
	return m.put64(a.u32(3), uint64(offset))
}

// fd_tell(fd, offset) returns the position of the next read or write.
func fdTell(s *System, m memory, a args) Errno {
	d, e := s.regular(a.u32(0), fdTellRight)
	if e != OK {
		return e
	}
	offset, err := d.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return errnoOf(err)
	}
	return m.put64(a.u32(1), uint64(offset))
}

// fd_allocate(fd, offset, len) ensures that there is room for a range.
func fdAllocate(s *System, _ memory, a args) Errno {
	d, e := s.regular(a.u32(0), fdAllocateRight)
	if e != OK {
		return e
	}
	offset, n := int64(a.u64(1)), int64(a.u64(2))
	switch {
	case offset < 0 || n <= 0:
		return EINVAL
	case offset > math.MaxInt64-n:
		return EFBIG
	}
	if e := s.extend(d.file, offset); e != OK {
		return e
	}
	if e := s.charge(n); e != OK {
		return e
	}
	return errnoOf(allocate(d.file, offset, n))
}

// fd_sync(fd) waits until a file or directory is durable.
func fdSync(s *System, _ memory, a args) Errno {
	return s.sync(a.u32(0), fdSyncRight)
}

// fd_datasync(fd) does what fd_sync does, which is more than required.
func fdDatasync(s *System, _ memory, a args) Errno {
	return s.sync(a.u32(0), fdDatasyncRight)
}

func (s *System) sync(fd uint32, need rights) Errno {
	d, e := s.get(fd, need)
	if e != OK {
		return e
	}
	if d.kind == regular {
		return errnoOf(d.file.Sync())
	}
	f, err := d.dir.root.Open(".")
	if err != nil {
		return errnoOf(err)
	}
	defer f.Close()
	return errnoOf(f.Sync())
}
