package wasiabi

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// Flags of path_open.
const (
	createFlag = 1 << iota
	directoryFlag
	exclusiveFlag
	truncateFlag
	allOpenFlags = 1<<iota - 1
)

// opening is what a guest wants to open, and how.
type opening struct {
	in      descriptor // the directory
	name    string
	follow  bool
	flags   uint32
	fdflags fdflags
	rights  rights // of a file
}

// path_open(fd, dirflags, path, path_len, oflags, base, inheriting, fdflags,
// opened) opens a regular file or a directory, and nothing else: opening a FIFO
// or a device may block, or have side effects.
//
// Libraries request all rights that they know, or fewer than they use. So for a
// file, rights that the directory doesn't grant are dropped, except for
// writing, which is an error; and a directory has the rights of the one it was
// found in, until they are dropped.
func pathOpen(s *System, m memory, a args) Errno {
	d, e := s.dir(a.u32(0), pathOpenRight)
	if e != OK {
		return e
	}
	name, e := m.path(a.u32(2), a.u32(3))
	if e != OK {
		return e
	}
	if a.u32(1) > followFlag || a.u32(4) > allOpenFlags || a.u32(7) > allFlags {
		return EINVAL
	}
	if _, e := m.view(a.u32(8), 4); e != OK {
		return e
	}
	o := &opening{
		in: *d, name: name, follow: a.u32(1) == followFlag, flags: a.u32(4), fdflags: fdflags(a.u32(7)),
		rights: rights(a.u64(5)) & fileRights,
	}
	if e := o.allowed(); e != OK {
		return e
	}
	fd, e := s.vacant()
	if e != OK {
		return e
	}
	opened, e := s.open(o)
	if e != OK {
		return e
	}
	s.fds[fd] = opened
	s.changed = true
	return m.put32(a.u32(8), fd)
}

// allowed checks the rights of the directory.
func (o *opening) allowed() Errno {
	if o.flags&createFlag != 0 && o.flags&directoryFlag != 0 {
		return EINVAL
	}
	var need rights
	if o.flags&createFlag != 0 {
		need |= pathCreateFileRight
	}
	if o.flags&truncateFlag != 0 {
		need |= pathSetSizeRight
	}
	if o.in.rights&need != need {
		return o.in.refusal(need)
	}
	if o.rights&fdWriteRight != 0 && o.in.inherit&fdWriteRight == 0 {
		return o.in.refusal(fdSetSizeRight)
	}
	return OK
}

func (s *System) open(o *opening) (descriptor, Errno) {
	info, err := stat(o.in.dir.root, o.name, o.follow)
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.flags&createFlag != 0:
		var d descriptor
		e := s.name(func() (err error) {
			d, err = o.openFile()
			return err
		})
		return d, e
	case err != nil:
		return descriptor{}, errnoOf(err)
	case o.flags&createFlag != 0 && o.flags&exclusiveFlag != 0:
		return descriptor{}, EEXIST
	case info.Mode().IsDir():
		return o.openDir()
	case info.Mode().Type() == fs.ModeSymlink:
		return descriptor{}, ELOOP
	case !info.Mode().IsRegular():
		return descriptor{}, EPERM
	case o.flags&directoryFlag != 0:
		return descriptor{}, ENOTDIR
	}
	d, err := o.openFile()
	return d, errnoOf(err)
}

// openFile opens or creates a regular file.
func (o *opening) openFile() (descriptor, error) {
	// The file that was checked may be something else by now, which must not block.
	flag := o.access() | syscall.O_NONBLOCK
	f, err := o.in.dir.root.OpenFile(o.name, flag, 0o666)
	if err != nil {
		return descriptor{}, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = syscall.EPERM
	}
	if err == nil && o.fdflags&appendFlag != 0 {
		// Package os would refuse WriteAt on a file opened with O_APPEND.
		err = setAppend(f, true)
	}
	if err != nil {
		// It was not used: there is nothing to lose.
		_ = f.Close()
		return descriptor{}, err
	}
	granted := o.rights & o.in.inherit
	if granted&fdWriteRight == 0 {
		granted &^= writableRights
	}
	return descriptor{kind: regular, flags: o.fdflags, rights: granted, file: f}, nil
}

// access returns the flags of package os.
func (o *opening) access() int {
	flag := os.O_RDONLY
	switch o.rights & (fdReadRight | fdWriteRight) {
	case fdReadRight | fdWriteRight:
		flag = os.O_RDWR
	case fdWriteRight:
		flag = os.O_WRONLY
	}
	for _, f := range [...]struct {
		set  bool
		flag int
	}{
		{o.flags&createFlag != 0, os.O_CREATE},
		{o.flags&exclusiveFlag != 0, os.O_EXCL},
		{o.flags&truncateFlag != 0, os.O_TRUNC},
		{o.fdflags&durableFlags != 0, os.O_SYNC},
	} {
		if f.set {
			flag |= f.flag
		}
	}
	return flag
}

// openDir opens a directory.
func (o *opening) openDir() (descriptor, Errno) {
	if o.flags&(createFlag|truncateFlag) != 0 || o.rights&fdWriteRight != 0 {
		return descriptor{}, EISDIR
	}
	// The dot makes the kernel refuse what is no longer a directory.
	root, err := o.in.dir.root.OpenRoot(o.name + "/.")
	if err != nil {
		return descriptor{}, errnoOf(err)
	}
	return descriptor{
		kind: directory, flags: o.fdflags, rights: o.in.rights, inherit: o.in.inherit,
		dir: &openDir{mount: o.in.dir.mount, root: root, path: path.Join(o.in.dir.path, o.name)},
	}, OK
}
