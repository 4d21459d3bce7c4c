package goguest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

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
	cmd := exec.CommandContext(context.Background(), "go", append([]string{"list", "-deps", "-json=ImportPath,Dir,Standard,GoFiles,EmbedFiles,Deps"}, folders...)...)
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
