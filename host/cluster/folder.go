package cluster

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// folderFile is the name of the file in a host's folder that the host keeps locked while it runs. Its first line is the
// place of the folder, the others are the keys of the last processes that held the lock.
const folderFile = "jobhost.host"

// keptKeys is how many keys the file holds. One is not enough: a process may end before it has joined with its key.
const keptKeys = 8

// folder is the locked folder of this host. Processes that held the lock before have ended for certain, so this host can
// take over their row in the table of hosts at once.
type folder struct {
	file   *os.File
	former [][]byte // the keys of those processes
}

// openFolder locks a folder and notes a key there. It returns nil, without an error, if another process holds the lock. In a
// copy of the folder, or after a restart of the machine, the place differs, and the keys are ignored.
func openFolder(dir, place string, key []byte) (_ *folder, err error) {
	path := filepath.Join(dir, folderFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("note the key of this host: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("note the key of this host in %s: %w", path, err), file.Close())
		}
	}()
	if err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, file.Close()
	} else if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, 4096))
	if err != nil {
		return nil, err
	}
	f := &folder{file: file, former: formerKeys(string(text), place)}
	lines := []string{place, hex.EncodeToString(key)}
	for _, k := range f.former {
		lines = append(lines, hex.EncodeToString(k))
	}
	lines = lines[:min(len(lines), 1+keptKeys)]
	if err = file.Truncate(0); err == nil {
		_, err = file.WriteAt([]byte(strings.Join(lines, "\n")+"\n"), 0)
	}
	return f, err
}

// formerKeys reads the file.
func formerKeys(text, place string) (keys [][]byte) {
	noted, rest, _ := strings.Cut(text, "\n")
	if place == "" || noted != place {
		return nil
	}
	for line := range strings.Lines(rest) {
		if key, err := hex.DecodeString(strings.TrimSpace(line)); err == nil && len(key) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// close releases the lock. f may be nil.
func (f *folder) close() error {
	if f == nil {
		return nil
	}
	// A child that is being started may have inherited the file, and would keep the lock.
	_ = syscall.Flock(int(f.file.Fd()), syscall.LOCK_UN)
	return f.file.Close()
}

// formerOf returns the keys of the processes that have ended. f may be nil.
func (f *folder) formerOf() [][]byte {
	if f == nil {
		return nil
	}
	return f.former
}
