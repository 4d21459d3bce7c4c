package wasiabi

import "os"

// kind is the kind of thing that a descriptor refers to.
type kind uint8

const (
	free   kind = iota
	input       // standard input
	output      // standard output
	errout      // standard error
	regular
	directory
)

// descriptor is an entry of the table.
type descriptor struct {
	kind    kind
	flags   fdflags
	rights  rights
	inherit rights // for what is opened in a directory
	// jumped is set when the position of the next write was chosen by a seek,
	// so that it may be beyond the end.
	jumped bool
	file   *os.File // for a regular file
	dir    *openDir // for a directory
}

// openDir is an open directory.
type openDir struct {
	mount *mount
	root  *os.Root // of this directory
	path  string   // within the mount, when it was opened
	list  *listing // nil = nothing was listed yet
}

func (d *descriptor) close() error {
	if d.kind == regular {
		return d.file.Close()
	}
	if d.kind != directory {
		return nil
	}
	if d.dir.list != nil {
		// It was only read, so there is nothing to lose.
		_ = d.dir.list.file.Close()
		d.dir.list = nil
	}
	if d.dir.root == d.dir.mount.root {
		return nil
	}
	return d.dir.root.Close()
}

// refusal returns the error for a descriptor that lacks required rights:
// programs for POSIX know EROFS and EBADF.
func (d *descriptor) refusal(need rights) Errno {
	switch {
	case d.kind == directory && d.dir.mount.readOnly && need&changingRights != 0:
		return EROFS
	case d.kind != directory && need&(fdReadRight|writableRights) != 0:
		return EBADF
	}
	return ENOTCAPABLE
}

// get returns a descriptor that has all of the given rights. It is valid until
// the next one is opened.
func (s *System) get(fd uint32, need rights) (*descriptor, Errno) {
	if uint64(fd) >= uint64(len(s.fds)) || s.fds[fd].kind == free {
		return nil, EBADF
	}
	d := &s.fds[fd]
	if d.rights&need != need {
		return nil, d.refusal(need)
	}
	return d, OK
}

// regular returns the descriptor of a file: for a directory the error is
// EISDIR, for a stream ESPIPE.
func (s *System) regular(fd uint32, need rights) (*descriptor, Errno) {
	d, e := s.get(fd, 0)
	switch {
	case e != OK:
		return nil, e
	case d.kind == directory:
		return nil, EISDIR
	case d.kind != regular:
		return nil, ESPIPE
	case d.rights&need != need:
		return nil, d.refusal(need)
	}
	return d, OK
}

// dir returns the descriptor of a directory: for anything else the error is ENOTDIR.
func (s *System) dir(fd uint32, need rights) (*descriptor, Errno) {
	d, e := s.get(fd, 0)
	switch {
	case e != OK:
		return nil, e
	case d.kind != directory:
		return nil, ENOTDIR
	case d.rights&need != need:
		return nil, d.refusal(need)
	}
	return d, OK
}

// vacant returns the lowest free number.
func (s *System) vacant() (uint32, Errno) {
	for i := range s.fds {
		if s.fds[i].kind == free {
			return uint32(i), OK
		}
	}
	if len(s.fds) >= s.maxOpen {
		return 0, EMFILE
	}
	s.fds = append(s.fds, descriptor{})
	return uint32(len(s.fds) - 1), OK
}

// restore closes what the attempt opened and restores the table.
func (s *System) restore() {
	for i := range s.fds {
		// An error would concern data that the attempt could have synced.
		_ = s.fds[i].close()
	}
	clear(s.fds)
	s.fds = append(s.fds[:0], s.base...)
	s.changed = false
}
