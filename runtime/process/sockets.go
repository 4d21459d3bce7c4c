package process

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// socketsPrefix begins the names of folders for sockets, and of nothing else. It is short, since their paths must be.
const socketsPrefix = "jhsock-"

// sockets is a folder for sockets, of mode 0700, that is locked while it is in use. It isn't below the data folder,
// whose path may be too long for a socket.
type sockets struct {
	dir  string
	lock *os.File // nil if the file system has no locks
}

// newSockets makes a folder in the system's temporary folder, and removes those of hosts that could not clean up: a
// lock ends with its process, however that ends.
func newSockets() (*sockets, error) {
	removeStale(os.TempDir())
	for {
		dir, err := os.MkdirTemp("", socketsPrefix)
		if err != nil {
			return nil, fmt.Errorf("make a folder for sockets: %w", err)
		}
		lock, err := lockFolder(dir)
		switch {
		case err == nil, errors.Is(err, errors.ErrUnsupported): // then no host can lock it, and none removes it
			return &sockets{dir: dir, lock: lock}, nil
		case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.EWOULDBLOCK):
			return nil, errors.Join(fmt.Errorf("lock the folder for sockets: %w", err), os.RemoveAll(dir))
		}
		// Another host saw it before it was locked, and removes it.
	}
}

// lockFolder locks an existing folder. Until then another host may remove it.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	mine, err := f.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Lstat(dir); err == nil && !os.SameFile(mine, there) {
			err = os.ErrNotExist
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// removeStale removes the folders that are not locked. What can't be locked or removed belongs to another user or host.
func removeStale(temp string) {
	all, _ := os.ReadDir(temp)
	for _, entry := range all {
		if !strings.HasPrefix(entry.Name(), socketsPrefix) {
			continue
		}
		dir := filepath.Join(temp, entry.Name())
		info, err := entry.Info()
		if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 || !ownFile(info) {
			continue
		}
		if lock, err := lockFolder(dir); err == nil {
			_, _ = os.RemoveAll(dir), lock.Close()
		}
	}
}

// ownFile reports whether a file belongs to this process's user: root could remove those of others.
func ownFile(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}

// close removes the folder.
func (s *sockets) close() error {
	err := os.RemoveAll(s.dir)
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// checkSocket checks that an address is that of a socket in a folder. Any other path
// is refused, wherever its links lead.
func checkSocket(folder string, addr net.Addr) error {
	unix, ok := addr.(*net.UnixAddr)
	if !ok {
		return errors.New("it listens on " + addr.Network() + ", not on a socket in its folder")
	}
	within, err := filepath.Rel(folder, unix.Name)
	if err != nil || !filepath.IsLocal(within) {
		return errors.New("its socket is not in the folder that it was given")
	}
	root, err := os.OpenRoot(folder) // which no link can escape
	if err != nil {
		return fmt.Errorf("look at its socket: %w", err)
	}
	defer func() { _ = root.Close() }()
	info, err := root.Lstat(within)
	if err != nil {
		return fmt.Errorf("look at its socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("what it calls its socket is none")
	}
	return nil
}
