package watch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/watch"
)

// fixture watches a folder "src" and a file "one" beside it.
type fixture struct {
	*watch.Watcher
	t   *testing.T
	dir string
}

func setup(t *testing.T) *fixture {
	t.Helper()
	w, err := watch.New(20 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{Watcher: w, t: t, dir: t.TempDir()}
	f.write("one", "1")
	f.write("src/a.go", "a")
	f.write("src/skipped/x", "x")
	if err := f.Set(f.targets()); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) targets() watch.Targets {
	return watch.Targets{Files: []string{f.path("one")}, Trees: []string{f.path("src")}, Skip: []string{f.path("src/skipped")}}
}

func (f *fixture) path(name string) string { return filepath.Join(f.dir, name) }

// write creates a file atomically, so that even a slow machine never shows half of it.
func (f *fixture) write(name, text string) {
	f.t.Helper()
	path := f.path(name)
	half := filepath.Join(filepath.Dir(path), ".half")
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(half, []byte(text), 0o600), os.Rename(half, path))
	if err != nil {
		f.t.Fatal(err)
	}
}

// want expects these changes, in one look or in several.
func (f *fixture) want(names ...string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Second)
	defer cancel()
	var seen []string
	for len(seen) < len(names) {
		changed, err := f.Next(ctx)
		if err != nil {
			f.t.Fatalf("changed %v, %v; want %v", seen, err, names)
		}
		for _, path := range changed {
			seen = append(seen, strings.TrimPrefix(path, f.dir+"/"))
		}
	}
	slices.Sort(seen)
	if !slices.Equal(seen, names) {
		f.t.Fatalf("changed %v, want %v", seen, names)
	}
}

func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.write("one", "2")
	f.want("one")
	f.write("src/a.go", "b")
	f.write("src/b.go", "b")
	f.want("src/a.go", "src/b.go")
	f.write("src/deep/er/c.go", "c")
	f.want("src/deep/er/c.go")
	f.write("src/deep/er/c.go", "d") // folders that came later are watched too
	f.want("src/deep/er/c.go")
	if err := os.RemoveAll(f.path("src/deep")); err != nil {
		t.Fatal(err)
	}
	f.want("src/deep/er/c.go")
}

// An editor that saves replaces the old file by another.
func TestReplacedFile(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, text := range []string{"2", "3"} {
		f.write("one.tmp", text)
		if err := os.Rename(f.path("one.tmp"), f.path("one")); err != nil {
			t.Fatal(err)
		}
		f.want("one")
	}
	if err := os.Remove(f.path("one")); err != nil {
		t.Fatal(err)
	}
	f.want("one")
	f.write("one", "3")
	f.want("one")
}

func TestWhatIsNothingNew(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.write("one", "1") // the same again
	f.write("beside", "x")
	f.write("src/.hidden", "x")
	f.write("src/a.go~", "x")
	f.write("src/skipped/x", "y")
	f.write("src/node_modules/x", "y")
	if err := os.Chtimes(f.path("src/a.go"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if changed, err := f.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("changed %v, %v", changed, err)
	}
}

func TestSetKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.write("two", "2")
	f.write("src/a.go", "b") // not reported yet
	targets := f.targets()
	targets.Files = []string{f.path("two"), f.path("nowhere/three")}
	if err := f.Set(targets); err != nil {
		t.Fatal(err)
	}
	f.want("src/a.go")
	f.write("one", "4") // no longer watched
	f.write("two", "3")
	f.want("two")
}

// A file that is written continuously does not keep the others from being reported.
func TestImpatience(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan struct{})
	go func() {
		defer close(written)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			_ = os.WriteFile(f.path("beside"), []byte(time.Now().String()), 0o600)
		}
	}()
	f.write("one", "2")
	f.want("one")
	cancel()
	<-written
}
