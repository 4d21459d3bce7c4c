package wasiabi

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

func pathFunctions() []Function {
	return []Function{
		define("path_create_directory", "fd path path_len", pathCreateDirectory),
		define("path_link", "old_fd old_flags old_path old_path_len new_fd new_path new_path_len", pathLink),
		define("path_readlink", "fd path path_len buf buf_len bufused", pathReadlink),
		define("path_remove_directory", "fd path path_len", pathRemoveDirectory),
		define("path_rename", "fd old_path old_path_len new_fd new_path new_path_len", pathRename),
		define("path_symlink", "old_path old_path_len fd new_path new_path_len", pathSymlink),
		define("path_unlink_file", "fd path path_len", pathUnlinkFile),
	}
}

// lookup returns the directory and the path of a call.
func (s *System) lookup(m memory, need rights, fd, ptr, n uint32) (*openDir, string, Errno) {
	d, e := s.dir(fd, need)
	if e != OK {
		return nil, "", e
	}
	name, e := m.path(ptr, n)
	return d.dir, name, e
}

// path_create_directory(fd, path, path_len) makes a directory.
func pathCreateDirectory(s *System, m memory, a args) Errno {
	d, name, e := s.lookup(m, pathCreateDirectoryRight, a.u32(0), a.u32(1), a.u32(2))
	if e != OK {
		return e
	}
	return s.name(func() error { return d.root.Mkdir(name, 0o777) })
}

// path_unlink_file(fd, path, path_len) removes anything but a directory.
func pathUnlinkFile(s *System, m memory, a args) Errno {
	d, name, e := s.lookup(m, pathUnlinkFileRight, a.u32(0), a.u32(1), a.u32(2))
	if e != OK {
		return e
	}
	info, err := d.root.Lstat(name)
	switch {
	case err != nil:
		return errnoOf(err)
	case info.IsDir():
		return EISDIR
	}
	return errnoOf(d.root.Remove(name))
}

// path_remove_directory(fd, path, path_len) removes an empty directory.
func pathRemoveDirectory(s *System, m memory, a args) Errno {
	d, name, e := s.lookup(m, pathRemoveDirectoryRight, a.u32(0), a.u32(1), a.u32(2))
	if e != OK {
		return e
	}
	info, err := d.root.Lstat(name)
	switch {
	case err != nil:
		return errnoOf(err)
	case !info.IsDir():
		return ENOTDIR
	}
	return errnoOf(d.root.Remove(name))
}

// path_readlink(fd, path, path_len, buf, buf_len, bufused) reads the target of
// a link, as much as fits. The target may be outside the mount: that is only
// text, which is not followed.
func pathReadlink(s *System, m memory, a args) Errno {
	d, name, e := s.lookup(m, pathReadlinkRight, a.u32(0), a.u32(1), a.u32(2))
	if e != OK {
		return e
	}
	buf, e := m.view(a.u32(3), uint64(a.u32(4)))
	if e != OK {
		return e
	}
	if _, e := m.view(a.u32(5), 4); e != OK {
		return e
	}
	target, err := d.root.Readlink(name)
	if err != nil {
		return errnoOf(err)
	}
	return m.put32(a.u32(5), uint32(copy(buf, target)))
}

// path_symlink(old_path, old_path_len, fd, new_path, new_path_len) creates a
// link. One that leads out of the mount is refused: no guest could follow it,
// but the operator's tools would.
func pathSymlink(s *System, m memory, a args) Errno {
	target, e := m.path(a.u32(0), a.u32(1))
	if e != OK {
		return e
	}
	d, name, e := s.lookup(m, pathSymlinkRight, a.u32(2), a.u32(3), a.u32(4))
	if e != OK {
		return e
	}
	if d.leadsOut(name, target) {
		return EPERM
	}
	return s.name(func() error { return d.root.Symlink(target, name) })
}

// path_link(old_fd, old_flags, old_path, old_path_len, new_fd, new_path,
// new_path_len) gives a file another name. Links aren't followed.
func pathLink(s *System, m memory, a args) Errno {
	from, old, e := s.lookup(m, pathLinkSourceRight, a.u32(0), a.u32(2), a.u32(3))
	if e != OK {
		return e
	}
	to, name, e := s.lookup(m, pathLinkTargetRight, a.u32(4), a.u32(5), a.u32(6))
	if e != OK {
		return e
	}
	if a.u32(1) != 0 {
		return EINVAL
	}
	if from.movesOut(old, to, name) {
		return EPERM
	}
	root, old, name, e := common(from, to, old, name)
	if e != OK {
		return e
	}
	return s.name(func() error { return root.Link(old, name) })
}

// path_rename(fd, old_path, old_path_len, new_fd, new_path, new_path_len)
// moves a file or directory.
func pathRename(s *System, m memory, a args) Errno {
	from, old, e := s.lookup(m, pathRenameSourceRight, a.u32(0), a.u32(1), a.u32(2))
	if e != OK {
		return e
	}
	to, name, e := s.lookup(m, pathRenameTargetRight, a.u32(3), a.u32(4), a.u32(5))
	if e != OK {
		return e
	}
	if from.movesOut(old, to, name) {
		return EPERM
	}
	root, old, name, e := common(from, to, old, name)
	if e != OK {
		return e
	}
	err := root.Rename(old, name)
	if !errors.Is(err, fs.ErrExist) {
		return errnoOf(err)
	}
	return replaceDir(root, old, name)
}

// replaceDir moves something over a directory, which [os.Root.Rename] doesn't
// do. In POSIX a directory may replace an empty one atomically; here there is
// none for a moment.
func replaceDir(root *os.Root, old, name string) Errno {
	info, err := root.Lstat(old)
	if err != nil {
		return errnoOf(err)
	}
	place, err := root.Lstat(name)
	switch {
	case err != nil:
		return errnoOf(err)
	case os.SameFile(info, place):
		return OK
	case !info.IsDir():
		return EISDIR
	case strings.HasPrefix(path.Clean(name), path.Clean(old)+"/"):
		return EINVAL
	}
	if err := root.Remove(name); err != nil {
		return errnoOf(err)
	}
	return errnoOf(root.Rename(old, name))
}

// common returns a root that contains both of two paths, and the paths relative
// to it. Two mounts have none in common.
func common(from, to *openDir, old, name string) (root *os.Root, oldPath, newPath string, e Errno) {
	if from == to || from.root == to.root {
		return from.root, old, name, OK
	}
	if from.mount != to.mount {
		return nil, "", "", EXDEV
	}
	if !filepath.IsLocal(old) || !filepath.IsLocal(name) {
		return nil, "", "", EPERM
	}
	if !from.inPlace() || !to.inPlace() {
		return nil, "", "", EXDEV
	}
	return from.mount.root, from.path + "/" + old, to.path + "/" + name, OK
}

// inPlace reports whether a directory is still where it was opened. Even if it
// moves right afterwards, the path can't lead out of the mount.
func (d *openDir) inPlace() bool {
	is, err := d.root.Stat(".")
	if err != nil {
		return false
	}
	there, err := d.mount.root.Stat(d.path)
	return err == nil && os.SameFile(is, there)
}
