// Package prune limits caches in which each entry is a folder named by a digest: it removes entries that are no
// longer used.
package prune

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Limits of a cache.
const (
	// maxAge is how much longer ago than the newest entry an entry may have been used. Counting from the newest entry,
	// not from now, spares the entries of a host that ran for months and has just been restarted.
	maxAge   = 30 * 24 * time.Hour
	maxBytes = 2 << 30 // of all entries together
)

// IsDigest reports whether a name is a SHA-256 digest in lower case, like those of entries.
func IsDigest(name string) bool {
	sum, err := hex.DecodeString(name)
	return err == nil && len(sum) == 32 && hex.EncodeToString(sum) == name
}

// entry is a folder of a cache.
type entry struct {
	path string
	used time.Time
	size int64
}

// Folders removes the entries of a cache that have not been used for long, and then the least recently used until the
// others fit. The time of use is the newest time of an entry's folder and of what is directly in it. Everything else in
// dir is left alone. Programs that use an entry must cope with its removal.
func Folders(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("prune %s: %w", dir, err)
	}
	var entries []entry
	var errs []error
	for _, d := range list {
		if !d.IsDir() || !IsDigest(d.Name()) {
			continue
		}
		e, err := look(filepath.Join(dir, d.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Or(b.used.Compare(a.used), cmp.Compare(a.path, b.path)) })
	for _, e := range excess(entries, time.Now()) {
		errs = append(errs, os.RemoveAll(e.path))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("prune %s: %w", dir, err)
	}
	return nil
}

// excess returns which entries must be removed, given all of them, newest first.
func excess(entries []entry, now time.Time) (gone []entry) {
	newest, total := now, int64(0)
	if len(entries) > 0 && entries[0].used.Before(now) {
		newest = entries[0].used
	}
	for _, e := range entries {
		if newest.Sub(e.used) > maxAge || total+e.size > maxBytes {
			gone = append(gone, e)
			continue
		}
		total += e.size
	}
	return gone
}

// look inspects an entry. It follows no links, and ignores what is removed while it runs.
func look(path string) (entry, error) {
	e := entry{path: path}
	err := filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case info.Mode().IsRegular():
			e.size += info.Size()
		}
		if (at == path || filepath.Dir(at) == path) && info.ModTime().After(e.used) {
			e.used = info.ModTime()
		}
		return nil
	})
	return e, err
}
