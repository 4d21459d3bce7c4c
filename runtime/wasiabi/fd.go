package wasiabi

import "encoding/binary"

func fdFunctions() []Function {
	return []Function{
		define("fd_advise", "fd offset:i64 len:i64 advice", fdAdvise),
		define("fd_close", "fd", fdClose),
		define("fd_fdstat_get", "fd stat", fdFdstatGet),
		define("fd_fdstat_set_flags", "fd flags", fdFdstatSetFlags),
		define("fd_fdstat_set_rights", "fd base:i64 inheriting:i64", fdFdstatSetRights),
		define("fd_prestat_dir_name", "fd path path_len", fdPrestatDirName),
		define("fd_prestat_get", "fd prestat", fdPrestatGet),
		define("fd_renumber", "fd to", fdRenumber),
	}
}

// fdflags are how a descriptor writes.
type fdflags uint16

const (
	appendFlag   fdflags = 1 << iota
	dsyncFlag            // writes wait until the data is durable
	nonblockFlag         // kept, but nothing blocks anyway
	rsyncFlag
	syncFlag
	allFlags = 1<<iota - 1

	durableFlags = dsyncFlag | rsyncFlag | syncFlag
)

// filetype is the type of a file; the numbers are those of the snapshot.
type filetype uint8

const (
	unknownType   filetype = 0
	blockType     filetype = 1
	characterType filetype = 2
	directoryType filetype = 3
	regularType   filetype = 4
	socketType    filetype = 6
	linkType      filetype = 7
)

// maxAdvice is the last of the advices.
const maxAdvice = 5

// fd_advise(fd, offset, len, advice) gives advice that the host ignores.
func fdAdvise(s *System, _ memory, a args) Errno {
	d, e := s.get(a.u32(0), fdAdviseRight)
	switch {
	case e != OK:
		return e
	case d.kind == directory:
		return EISDIR
	case a.u32(3) > maxAdvice || int64(a.u64(1)) < 0 || int64(a.u64(2)) < 0:
		return EINVAL
	}
	return OK
}

// fd_close(fd) closes a descriptor. Streams and mounts are reopened for the next attempt.
func fdClose(s *System, _ memory, a args) Errno {
	d, e := s.get(a.u32(0), 0)
	if e != OK {
		return e
	}
	err := d.close()
	*d = descriptor{}
	s.changed = true
	return errnoOf(err)
}

// fd_fdstat_get(fd, stat) returns type, flags and rights: 24 bytes.
func fdFdstatGet(s *System, m memory, a args) Errno {
	d, e := s.get(a.u32(0), 0)
	if e != OK {
		return e
	}
	b, e := m.view(a.u32(1), 24)
	if e != OK {
		return e
	}
	clear(b)
	b[0] = byte(s.filetype(d))
	binary.LittleEndian.PutUint16(b[2:], uint16(d.flags))
	binary.LittleEndian.PutUint64(b[8:], uint64(d.rights))
	binary.LittleEndian.PutUint64(b[16:], uint64(d.inherit))
	return OK
}

// filetype returns the type of what a descriptor refers to. Where lines are
// logged, output claims to be a terminal: libraries then flush each line,
// instead of keeping it in a buffer that is lost with the job.
func (s *System) filetype(d *descriptor) filetype {
	switch d.kind {
	case regular:
		return regularType
	case directory:
		return directoryType
	case output, errout:
		if s.mode == Log {
			return characterType
		}
	}
	return unknownType
}

// fd_fdstat_set_flags(fd, flags) changes APPEND and NONBLOCK.
func fdFdstatSetFlags(s *System, _ memory, a args) Errno {
	d, e := s.get(a.u32(0), fdSetFlagsRight)
	if e != OK {
		return e
	}
	if a.u32(1) > allFlags {
		return EINVAL
	}
	flags := fdflags(a.u32(1))
	if (flags^d.flags)&durableFlags != 0 {
		return ENOTSUP // nor can Linux clear or set these flags later
	}
	if d.kind == regular && (flags^d.flags)&appendFlag != 0 {
		if err := setAppend(d.file, flags&appendFlag != 0); err != nil {
			return errnoOf(err)
		}
	}
	if d.flags != flags {
		d.flags = flags
		s.changed = true
	}
	return OK
}

// fd_fdstat_set_rights(fd, base, inheriting) drops rights.
func fdFdstatSetRights(s *System, _ memory, a args) Errno {
	d, e := s.get(a.u32(0), 0)
	if e != OK {
		return e
	}
	base, inherit := rights(a.u64(1)), rights(a.u64(2))
	if base&^d.rights != 0 || inherit&^d.inherit != 0 {
		return ENOTCAPABLE
	}
	d.rights, d.inherit = base, inherit
	s.changed = true
	return OK
}

// preopen returns the descriptor of a mount that was there at the beginning.
func (s *System) preopen(fd uint32) (*mount, Errno) {
	d, e := s.get(fd, 0)
	switch {
	case e != OK:
		return nil, e
	case d.kind != directory || d.dir.root != d.dir.mount.root:
		// Guests recognize the end of the mounts by EBADF.
		return nil, EBADF
	}
	return d.dir.mount, OK
}

// fd_prestat_get(fd, prestat) says that a descriptor is a mount, and returns
// the length of its path: 8 bytes.
func fdPrestatGet(s *System, m memory, a args) Errno {
	mount, e := s.preopen(a.u32(0))
	if e != OK {
		return e
	}
	// In the first four bytes, 0 means a directory, the only type there is.
	return m.put64(a.u32(1), uint64(len(mount.guest))<<32)
}

// fd_prestat_dir_name(fd, path, path_len) writes the path of a mount.
func fdPrestatDirName(s *System, m memory, a args) Errno {
	mount, e := s.preopen(a.u32(0))
	if e != OK {
		return e
	}
	if uint64(a.u32(2)) < uint64(len(mount.guest)) {
		return ENAMETOOLONG
	}
	b, e := m.view(a.u32(1), uint64(len(mount.guest)))
	copy(b, mount.guest)
	return e
}

// fd_renumber(fd, to) moves a descriptor to the number of another one, which is
// closed.
func fdRenumber(s *System, _ memory, a args) Errno {
	from, e := s.get(a.u32(0), 0)
	if e != OK {
		return e
	}
	to, e := s.get(a.u32(1), 0)
	if e != OK || from == to {
		return e
	}
	err := to.close()
	*to, *from = *from, descriptor{}
	s.changed = true
	return errnoOf(err)
}
