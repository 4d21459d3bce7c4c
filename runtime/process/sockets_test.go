package process

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// TestSocketsOfOthersAreRemoved leaves folders behind, as killed hosts do: the next host removes those, but not folders
// in use or other folders.
func TestSocketsOfOthersAreRemoved(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	used, err := newSockets()
	if err != nil {
		t.Fatal(err)
	}
	left, err := newSockets()
	if err != nil {
		t.Fatal(err)
	}
	name := func(s *sockets) string { return filepath.Base(s.dir) }
	err = errors.Join(left.lock.Close(), // which the system does when a process ends
		os.WriteFile(filepath.Join(left.dir, "socket"), nil, 0o600),
		os.Mkdir(filepath.Join(temp, "jhsock-open"), 0o755), os.WriteFile(filepath.Join(temp, "jhsock-file"), nil, 0o700),
		os.Mkdir(filepath.Join(temp, "jobhost-other"), 0o700), os.Symlink(filepath.Join(temp, "jobhost-other"), filepath.Join(temp, "jhsock-link")))
	if err != nil {
		t.Fatal(err)
	}
	next, err := newSockets()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"jobhost-other", "jhsock-open", "jhsock-file", "jhsock-link", name(used), name(next)}
	slices.Sort(want)
	var got []string
	entries, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("there is %q, want %q", got, want)
	}
	if err := errors.Join(used.close(), next.close()); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "jhsock-[0-9]*")); len(left) > 0 {
		t.Errorf("closed, and still there: %q", left)
	}
}

// TestHammerSockets has many hosts start and end concurrently: each has a folder of its own while it runs.
func TestHammerSockets(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var hosts sync.WaitGroup
	for range 8 {
		hosts.Go(func() {
			for range 50 {
				s, err := newSockets()
				if err != nil {
					t.Error(err)
					return
				}
				removeStale(os.TempDir())
				if err := errors.Join(os.WriteFile(filepath.Join(s.dir, "socket"), nil, 0o600), s.close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	hosts.Wait()
}
