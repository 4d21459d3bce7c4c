package wasm_test

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// cachedFiles lists the files below dir.
func cachedFiles(t *testing.T, dir string) (files []string) {
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

func TestCache(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	loadOnce := func() {
		e, err := wasm.New(wasm.Config{CacheDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		load(t, e, guests.Echo, runtime.Limits{})
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	loadOnce()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v", info.Mode(), err)
	}
	files := cachedFiles(t, dir)
	if len(files) == 0 {
		t.Fatal("nothing was kept")
	}
	loadOnce()
	if got := cachedFiles(t, dir); len(got) != len(files) {
		t.Errorf("%d files became %d", len(files), len(got))
	}
	if log.Len() > 0 {
		t.Errorf("log: %s", log.String())
	}

	// Damaged files are made again.
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) == 0 { // the mark of a module that is valid
			continue
		}
		b[len(b)/2] ^= 0xff
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loadOnce()
	if !strings.Contains(log.String(), "compile cache is damaged") {
		t.Errorf("log: %q", log.String())
	}
}

// TestCacheCannotBeWritten: a full disk, say, is no fault of the module.
func TestCacheCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	e, err := wasm.New(wasm.Config{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close(context.Background()) }()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_, err = e.Load(t.Context(), runtime.Source{Worker: "w", Bytes: guests.Echo})
	if jobhost.CodeOf(err) != jobhost.CodeUnavailable || !strings.Contains(jobhost.HintOf(err), "disk") {
		t.Errorf("%v; %s", err, jobhost.HintOf(err))
	}
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
