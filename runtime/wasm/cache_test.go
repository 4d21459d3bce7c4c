package wasm_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// cachedFiles lists the files below dir.
func cachedFiles(t testing.TB, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// newCache returns a folder in which the code of a guest is kept.
func newCache(t *testing.T, guest []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cache")
	if log := runCached(t, dir, guest); log != "" {
		t.Fatalf("a new cache: %s", log)
	}
	return dir
}

// runCached loads a guest in an engine of its own, runs a job that echoes, or
// does nothing, and returns what was logged.
func runCached(t *testing.T, dir string, guest []byte) string {
	t.Helper()
	var log bytes.Buffer
	e, err := wasm.New(wasm.Config{CacheDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	p := load(t, e, guest, runtime.Limits{})
	i, err := p.Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := "hello"
	if bytes.Equal(guest, guests.Noop) {
		want = ""
	}
	if got := i.Run(t.Context(), runtimetest.Attempt("", "hello")).Outcome; string(got.Output) != want || got.Failure != nil {
		t.Errorf("output %q, %+v", got.Output, got.Failure)
	}
	if err := i.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return log.String()
}

func TestCache(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	runCached(t, dir, guests.Echo)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v", info.Mode(), err)
	}
	before := stats(t, dir)
	if len(before) == 0 {
		t.Fatal("nothing was kept")
	}
	if log := runCached(t, dir, guests.Echo); log != "" {
		t.Errorf("log: %s", log)
	}
	after := stats(t, dir)
	for path, info := range before {
		switch now := after[path]; {
		case now == nil:
			t.Errorf("%s is gone", path)
		case !os.SameFile(info, now):
			t.Errorf("%s was written again", path)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
}

// stats describes the files in a cache, but for marks of the validator.
func stats(t *testing.T, dir string) map[string]fs.FileInfo {
	t.Helper()
	infos := map[string]fs.FileInfo{}
	for _, path := range cachedFiles(t, dir) {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(info.Name(), "valid-") {
			infos[path] = info
		}
	}
	return infos
}

func TestCacheErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := wasm.New(wasm.Config{CacheDir: file}); err == nil || !strings.HasPrefix(err.Error(), "open the compile cache: ") {
		t.Errorf("a file as folder: %v", err)
	}
}

// TestCacheCannotBeWritten: a cache that can't be used is no reason not to run a
// plugin.
func TestCacheCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		spoil func(dir string) error
	}{
		{"it is gone", os.RemoveAll},
		{"a folder of the kernel", func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.Symlink("/proc", dir))
		}},
		{"a file", func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "cache")
			var log bytes.Buffer
			e, err := wasm.New(wasm.Config{CacheDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = e.Close(context.Background()) }()
			if err := tc.spoil(dir); err != nil {
				t.Fatal(err)
			}
			i := runtimetest.Instance(t, load(t, e, guests.Echo, runtime.Limits{}))
			if got := i.Run(t.Context(), runtimetest.Attempt("", "hello")).Outcome; string(got.Output) != "hello" {
				t.Errorf("%+v", got)
			}
			if strings.Count(log.String(), "compiled code can't be kept") != 1 {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// TestCacheFull: the disk is full, as wazero sees it: it can look for a file, but
// not write a temporary one, whose name is longer than paths may be.
func TestCacheFull(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	first := filepath.Join(base, "first")
	runCached(t, first, guests.Echo)
	longest := 0
	for _, path := range cachedFiles(t, first) {
		longest = max(longest, len(path)-len(first))
	}
	const pathMax = 4095
	dir := base
	for room := pathMax - longest - len(dir); room > 0; room = pathMax - longest - len(dir) {
		if room > 202 {
			room = 101
		} else if room > 101 {
			room /= 2
		}
		dir += "/" + strings.Repeat("d", room-1)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if log := runCached(t, dir, guests.Echo); strings.Count(log, "compiled code can't be kept") != 1 || !strings.Contains(log, "name too long") {
			t.Errorf("log: %s", log)
		}
	}
}

// TestCacheCleaning: what versions without seals left is removed, and nothing else.
func TestCacheCleaning(t *testing.T) {
	t.Parallel()
	dir := newCache(t, guests.Echo)
	digest := strings.Repeat("0a", 32)
	gone := []string{"valid-" + digest, "wazero-v1.12.0-amd64-linux/" + digest, "wazero-v1.12.0-amd64-linux/" + digest + ".123.tmp", "wazero-dev-amd64-linux/" + digest}
	stay := []string{"valid-x", "wazero-dev-amd64-linux/README", "processes/" + digest + "/key", "notes"}
	for _, name := range append(gone, stay...) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	old := filepath.Join(dir, digest)
	if err := errors.Join(os.Mkdir(old, 0o700), os.Chtimes(old, time.Unix(0, 0), time.Unix(0, 0))); err != nil {
		t.Fatal(err)
	}
	if log := runCached(t, dir, guests.Echo); log != "" {
		t.Errorf("log: %s", log)
	}
	for _, name := range append(gone, digest, "wazero-v1.12.0-amd64-linux") {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range stay {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
