// Package watch reports which files have new contents. It compares contents,
// not events: an editor that writes a file twice, a build that writes the same
// bytes again, or a changed time stamp are not changes. It waits until the
// files are quiet, since a file may be in the middle of being written.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// MaxFiles bounds the files that are watched.
const MaxFiles = 20_000

// Targets says what to watch. Paths are absolute.
type Targets struct {
	// Files are single files, which need not exist.
	Files []string
	// Trees are folders with everything below them, except what is hidden, what
	// ignore files name, and what is not a source by its name: editors' backups,
	// logs, documents, output of compilers, and folders that tools fill.
	Trees []string
	// Skip lists files and folders to leave out of the trees.
	Skip []string
	// Own lists files to leave out wherever they are, such as this process's own output.
	Own []fs.FileInfo
}

// Watcher watches files. It is not safe for concurrent use.
type Watcher struct {
	events  *fsnotify.Watcher
	quiet   time.Duration
	targets Targets
	folders map[string]bool      // that are watched for events
	seen    map[string]signature // of the files, when they were last looked at
	touched map[string]bool      // files that have had events since then
	all     bool                 // events were lost: any file may have been touched
}

// New returns a watcher of nothing. Files are looked at once nothing has
// happened to them for as long as quiet. Close frees it.
func New(quiet time.Duration) (*Watcher, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	return &Watcher{
		events: events, quiet: quiet,
		folders: map[string]bool{}, seen: map[string]signature{}, touched: map[string]bool{},
	}, nil
}

// Close ends the watching.
func (w *Watcher) Close() error { return w.events.Close() }

// Set replaces what is watched. The current contents of files that were not watched before
// count as known; changes of the others since the last look are still reported.
func (w *Watcher) Set(t Targets) error {
	w.targets = t
	files, folders, err := w.list()
	if err != nil {
		return err
	}
	if err := w.follow(folders); err != nil {
		return err
	}
	for path := range w.seen {
		if _, wanted := files[path]; !wanted {
			delete(w.seen, path)
		}
	}
	for path, info := range files {
		if _, known := w.seen[path]; !known {
			w.seen[path] = sign(path, info)
		}
	}
	return nil
}

// follow watches the folders for events, and no others.
func (w *Watcher) follow(folders map[string]bool) error {
	for dir := range w.folders {
		if !folders[dir] {
			_ = w.events.Remove(dir) // it may be gone already
			delete(w.folders, dir)
		}
	}
	for dir := range folders {
		if w.folders[dir] {
			continue
		}
		switch err := w.events.Add(dir); {
		case errors.Is(err, fs.ErrNotExist):
			continue // its creation is an event of a folder above, if that is watched
		case err != nil:
			return fmt.Errorf("watch %s: %w", dir, err)
		}
		w.folders[dir] = true
	}
	return nil
}

// Next waits until files have changed and are quiet, and returns them, sorted:
// those with new contents, new files and removed ones. The error is the
// context's cause, or says why nothing can be watched any more.
func (w *Watcher) Next(ctx context.Context) ([]string, error) {
	for {
		if err := w.settle(ctx); err != nil {
			return nil, err
		}
		changed, err := w.look()
		if err != nil || len(changed) > 0 {
			return changed, err
		}
	}
}

// mostPatience is how many times quiet a file that is written continuously can
// delay looking at the others.
const mostPatience = 20

// settle waits for an event and then until there is none for a while.
func (w *Watcher) settle(ctx context.Context) error {
	var quiet, enough <-chan time.Time // nil until the first event
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case event, open := <-w.events.Events:
			if !open {
				return errors.New("watch files: the watcher is closed")
			}
			if event.Op == fsnotify.Chmod {
				continue
			}
			w.touched[event.Name] = true
		case err, open := <-w.events.Errors:
			if !open {
				return errors.New("watch files: the watcher is closed")
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return fmt.Errorf("watch files: %w", err)
			}
			w.all = true
		case <-quiet:
			return nil
		case <-enough:
			return nil
		}
		quiet = time.After(w.quiet)
		if enough == nil {
			enough = time.After(mostPatience * w.quiet)
		}
	}
}

// look compares the files with their previous contents.
func (w *Watcher) look() ([]string, error) {
	files, folders, err := w.list()
	if err != nil {
		return nil, err
	}
	if err := w.follow(folders); err != nil {
		return nil, err
	}
	var changed []string
	for path, info := range files {
		before, known := w.seen[path]
		if known && !w.all && !w.touched[path] && before.same(info) {
			continue
		}
		now := sign(path, info)
		w.seen[path] = now
		if !known || now.sum != before.sum {
			changed = append(changed, path)
		}
	}
	for path := range w.seen {
		if _, there := files[path]; !there {
			delete(w.seen, path)
			changed = append(changed, path)
		}
	}
	clear(w.touched)
	w.all = false
	slices.Sort(changed)
	return changed, nil
}

// list finds the existing files, and the folders whose events concern them.
func (w *Watcher) list() (files map[string]fs.FileInfo, folders map[string]bool, err error) {
	files, folders = map[string]fs.FileInfo{}, map[string]bool{}
	for _, path := range w.targets.Files {
		folders[filepath.Dir(path)] = true // editors replace a file by another one
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files[path] = info
		}
	}
	for _, tree := range w.targets.Trees {
		if err := w.listTree(tree, files, folders); err != nil {
			return nil, nil, err
		}
	}
	return files, folders, nil
}

// listTree adds the files of a tree. What vanishes during the call is left out.
func (w *Watcher) listTree(tree string, files map[string]fs.FileInfo, folders map[string]bool) error {
	rules := rulesAbove(tree)
	return filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("watch %s: %w", tree, err)
		case path != tree && w.skips(path, entry, rules):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			folders[path] = true
			rules = append(rules, readRules(path)...)
			return nil
		}
		info, err := entry.Info()
		if err != nil || slices.ContainsFunc(w.targets.Own, func(own fs.FileInfo) bool { return os.SameFile(own, info) }) {
			return nil //nolint:nilerr // it is gone again
		}
		if files[path] = info; len(files) > MaxFiles {
			return fmt.Errorf("watch %s: there are more than %d files; name a smaller folder", tree, MaxFiles)
		}
		return nil
	})
}

// skips reports whether an entry of a tree is left out.
func (w *Watcher) skips(path string, entry fs.DirEntry, rules []rule) bool {
	switch {
	case ignored(entry), slices.Contains(w.targets.Skip, path), excluded(rules, path, entry.IsDir()):
		return true
	case entry.IsDir():
		return holdsCases(path)
	}
	return !entry.Type().IsRegular()
}
