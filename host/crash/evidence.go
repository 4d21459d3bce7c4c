package crash

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Limits of what is kept.
const (
	keptFiles = 5
	keptBytes = 256 << 10 // of each
)

// endOf determines how a host ended from Go's output and from the OOM counts before
// and after.
func endOf(text []byte, file string, before, after kills) *Ended {
	if len(text) > 0 {
		return &Ended{How: Fatal, Cause: causeIn(text), File: file}
	}
	switch group, system := after.since(before); {
	case group > 0:
		return &Ended{How: OOM, Cause: fmt.Sprintf("the kernel's OOM killer has ended %d processes of the host's cgroup %s", group, after.Group)}
	case system > 0:
		return &Ended{How: Killed, Cause: fmt.Sprintf(
			"it was ended from outside without a word, perhaps by the kernel's OOM killer, which has ended %d processes on this machine at about that time", system)}
	}
	return &Ended{How: Killed, Cause: "it was ended from outside without a word, as by SIGKILL"}
}

// readStart reads the beginning of a file.
func readStart(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, limit))
	return text, errors.Join(err, f.Close())
}

// discard removes the oldest files beyond the limit, except the one that attempts
// are about to refer to.
func (r *Recorder) discard() error {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	var kept []string // ordered by time, which is in their names
	for _, entry := range entries {
		referred := r.ended != nil && filepath.Base(r.ended.File) == entry.Name()
		if entry.Name() != running && strings.HasSuffix(entry.Name(), ".txt") && !referred {
			kept = append(kept, entry.Name())
		}
	}
	slices.Sort(kept)
	var errs []error
	for ; len(kept) > keptFiles; kept = kept[1:] {
		errs = append(errs, os.Remove(filepath.Join(r.dir, kept[0])))
	}
	return errors.Join(errs...)
}
