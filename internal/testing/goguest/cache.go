package goguest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/jobhost/jobhost/internal/prune"
)

// cacheDir holds the modules that were built, each in a folder named by the digest of its sources. Several test
// binaries, and later runs, share it.
var cacheDir = filepath.Join(os.TempDir(), fmt.Sprintf("jobhost-test-cache-%d", os.Getuid()), "guests")

// cached returns the module with this key, and builds it if there is none. While one process builds it, others wait.
func cached(dir, key string, build func(out string) error) ([]byte, error) {
	entry := filepath.Join(dir, key)
	path := filepath.Join(entry, "guest.wasm")
	if module, err := os.ReadFile(path); err == nil {
		now := time.Now()
		return module, os.Chtimes(path, now, now) // it is in use: see prune.Folders
	}
	if err := os.MkdirAll(entry, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.Open(entry)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", entry, err)
	}
	module, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return module, err
	}
	unfinished := filepath.Join(entry, "unfinished")
	if err := errors.Join(build(unfinished), prune.Folders(dir)); err != nil {
		return nil, err
	}
	if err := os.Rename(unfinished, path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// pkg is what `go list` says of a package.
type pkg struct {
	ImportPath, Dir           string
	Standard                  bool
	GoFiles, EmbedFiles, Deps []string

	sources [sha256.Size]byte // the digest of its files
}

// digests returns a digest for each guest, in the same order, of its sources and those of the packages it imports.
func digests(folders ...string) ([][]byte, error) {
	packages, err := list(folders)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, folder := range folders {
		guest := packages[folder]
		h := sha256.New()
		for _, path := range append(guest.Deps, guest.ImportPath) {
			if p := packages[path]; !p.Standard {
				_, _ = fmt.Fprintf(h, "%s %x\n", path, p.sources)
			}
		}
		all = append(all, h.Sum(nil))
	}
	return all, nil
}

// list returns the packages in some folders and all that they import, by import path, and those in the folders by folder, too.
func list(folders []string) (map[string]*pkg, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,Standard,GoFiles,EmbedFiles,Deps"}, folders...)...)
	cmd.Dir, cmd.Env = folders[0], environment()
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of the guests in %q: %w", folders, err)
	}
	packages := map[string]*pkg{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &pkg{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		if err := p.read(); err != nil {
			return nil, err
		}
		packages[p.ImportPath] = p
		if slices.Contains(folders, p.Dir) {
			packages[p.Dir] = p
		}
	}
}

// read sets the digest of the sources. Those of the standard library are as old as Go.
func (p *pkg) read() error {
	if p.Standard {
		return nil
	}
	h := sha256.New()
	for _, name := range append(p.GoFiles, p.EmbedFiles...) {
		source, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%s %d\n%s", name, len(source), source)
	}
	h.Sum(p.sources[:0])
	return nil
}
