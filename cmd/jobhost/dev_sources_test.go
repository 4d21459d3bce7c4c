package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// desk is a folder in which files are written at certain times, counted from the end of a
// build.
type desk struct {
	t   *testing.T
	dir string
	sources
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	return &desk{t: t, dir: t.TempDir(), sources: sources{built: testTime, swapped: testTime}}
}

// change writes files after the last build, or before its end, and returns those that are worth another.
func (d *desk) change(after time.Duration, names ...string) (worth []string) {
	d.t.Helper()
	var paths []string
	for _, name := range names {
		path, at := filepath.Join(d.dir, name), d.built.Add(after)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			d.t.Fatal(err)
		}
		paths = append(paths, path)
	}
	picked, _ := d.pick(paths, d.built.Add(max(after, 0)+100*time.Millisecond))
	for _, path := range picked {
		worth = append(worth, filepath.Base(path))
	}
	if len(worth) > 0 {
		d.built = d.built.Add(10 * time.Second)
	}
	return worth
}

func (d *desk) want(worth []string, want ...string) {
	d.t.Helper()
	if !slices.Equal(worth, want) {
		d.t.Fatalf("worth a build: %q, want %q", worth, want)
	}
}

func TestBuildsThatWriteSourcesEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.want(d.change(-time.Second, "made.c"), "made.c")
	d.want(d.change(-time.Second, "made.c", "new1.c"), "made.c", "new1.c")
	d.want(d.change(-time.Second, "made.c", "new2.c"))
	d.want(d.change(time.Minute, "main.c"), "main.c") // a person
	d.want(d.change(-time.Second, "made.c"))          // is known by now
	d.want(d.change(time.Minute, "made.c"), "made.c") // a person, again
	d.want(d.change(-time.Second, "made.c"), "made.c")
}

// Each save gets a build of its own, also one that comes right after the build before.
func TestFastEditsAreBuilt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for range 10 {
		d.want(d.change(time.Millisecond, "main.c"), "main.c")
	}
}

// A log has lines also of what comes after a build.
func TestLogsOfBuildsEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.want(d.change(100*time.Millisecond, "output"), "output")
	d.want(d.change(100*time.Millisecond, "output"), "output")
	d.want(d.change(100*time.Millisecond, "output"))
}

// A time of the future doesn't keep a build going, nor does a file that goes.
func TestOddFilesEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	path := filepath.Join(d.dir, "main.c")
	for i := range 3 {
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, testTime.Add(time.Hour), testTime.Add(time.Hour))); err != nil {
			t.Fatal(err)
		}
		worth, _ := d.pick([]string{path, filepath.Join(d.dir, "gone.c")}, testTime.Add(time.Second))
		if (len(worth) > 0) != (i < mostEchoes) {
			t.Errorf("round %d: %q", i, worth)
		}
	}
}
