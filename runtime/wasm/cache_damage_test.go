package wasm_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jobhost/jobhost/internal/prune"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// kept is the code of a guest in a cache.
type kept struct {
	cache, folder, seal, compiled string
}

// findKept finds the code that is in a cache, but not among others.
func findKept(t *testing.T, dir string, others ...kept) kept {
	t.Helper()
	k := kept{cache: dir}
	for _, path := range cachedFiles(t, dir) {
		folder, _, _ := strings.Cut(strings.TrimPrefix(path, dir+"/"), "/")
		if !prune.IsDigest(folder) {
			continue
		}
		folder = filepath.Join(dir, folder)
		if len(others) > 0 && others[0].folder == folder {
			continue
		}
		k.folder = folder
		if filepath.Base(path) == "seal" {
			k.seal = path
		} else {
			k.compiled = path
		}
	}
	if k.seal == "" || k.compiled == "" {
		t.Fatalf("not kept: %+v", k)
	}
	return k
}

// TestCacheFlippedBits: whatever bit of a cache changes, what runs is the plugin. The plugin is compiled after each change, so
// that some bytes are tried; JOBHOST_CHAOS=1 (make chaos) tries more.
func TestCacheFlippedBits(t *testing.T) {
	t.Parallel()
	dir := newCache(t, guests.Echo)
	k := findKept(t, dir)
	ends, stride := 16, 997
	if os.Getenv("JOBHOST_CHAOS") != "" {
		ends, stride = 256, 97
	}
	for _, path := range []string{k.compiled, k.seal} {
		good := read(t, path)
		for at := 0; at < len(good); at++ {
			if at > ends && at < len(good)-ends/8 && at%stride != 0 { // the header, the end, and some of the code
				continue
			}
			bad := bytes.Clone(read(t, path)) // it was recompiled
			bad[at] ^= 1 << (at % 8)
			write(t, path, bad)
			log := runCached(t, dir, guests.Echo)
			if strings.Count(log, "\n") != 1 || !strings.Contains(log, "compile cache is damaged") || !strings.Contains(log, "does not fit its seal") {
				t.Errorf("byte %d of %s: log: %q", at, filepath.Base(path), log)
			}
		}
	}
	if log := runCached(t, dir, guests.Echo); log != "" {
		t.Errorf("afterwards: %s", log)
	}
}

// TestCacheDamage: what doesn't belong in a cache is found, reported once, and repaired.
func TestCacheDamage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		damage func(t *testing.T, k kept)
		want   string // is logged
	}{
		{"cut off", func(t *testing.T, k kept) { truncate(t, k.compiled, -1) }, "does not fit"},
		{"empty", func(t *testing.T, k kept) { write(t, k.compiled, nil) }, "does not fit"},
		{"longer", func(t *testing.T, k kept) { truncate(t, k.compiled, 1) }, "does not fit"},
		{"huge", func(t *testing.T, k kept) { truncate(t, k.compiled, 1<<30) }, "more than"},
		{"gone", func(t *testing.T, k kept) { ok(t, os.Remove(k.compiled)) }, "does not fit"},
		{"renamed", func(t *testing.T, k kept) { ok(t, os.Rename(k.compiled, k.compiled+"0")) }, "does not fit"},
		{"without a seal", func(t *testing.T, k kept) { ok(t, os.Remove(k.seal)) }, "no seal"},
		{"a seal that is cut off", func(t *testing.T, k kept) { truncate(t, k.seal, -1) }, "another size"},
		{"a seal that is longer", func(t *testing.T, k kept) { truncate(t, k.seal, 1) }, "another size"},
		{"another file", func(t *testing.T, k kept) { write(t, k.compiled+".1.tmp", []byte("x")) }, "does not fit"},
		{"another folder", func(t *testing.T, k kept) { ok(t, os.Mkdir(filepath.Join(k.folder, "more"), 0o700)) }, "does not fit"},
		{"many files", func(t *testing.T, k kept) {
			for n := range 1000 {
				write(t, k.compiled+strings.Repeat("x", n%100)+string(rune('a'+n/100)), nil)
			}
		}, "more than"},
		{"a link to a file", func(t *testing.T, k kept) {
			elsewhere := filepath.Join(t.TempDir(), "code")
			ok(t, os.Rename(k.compiled, elsewhere))
			ok(t, os.Symlink(elsewhere, k.compiled))
		}, "neither a file nor a folder"},
		{"a link to a seal", func(t *testing.T, k kept) {
			elsewhere := filepath.Join(t.TempDir(), "seal")
			ok(t, os.Rename(k.seal, elsewhere))
			ok(t, os.Symlink(elsewhere, k.seal))
		}, "too many levels of symbolic links"},
		{"a link to a folder", func(t *testing.T, k kept) {
			elsewhere := filepath.Join(t.TempDir(), "folder")
			ok(t, os.Rename(k.folder, elsewhere))
			ok(t, os.Symlink(elsewhere, k.folder))
		}, "not a directory"},
		{"a file for a folder", func(t *testing.T, k kept) {
			ok(t, os.RemoveAll(k.folder))
			write(t, k.folder, []byte("x"))
		}, "not a directory"},
		{"a folder for a file", func(t *testing.T, k kept) {
			ok(t, os.Remove(k.compiled))
			ok(t, os.Mkdir(k.compiled, 0o700))
		}, "does not fit"},
		{"a folder for a seal", func(t *testing.T, k kept) {
			ok(t, os.Remove(k.seal))
			ok(t, os.Mkdir(k.seal, 0o700))
		}, "is not a file"},
		{"a pipe for a file", func(t *testing.T, k kept) {
			ok(t, os.Remove(k.compiled))
			ok(t, syscall.Mkfifo(k.compiled, 0o600))
		}, "neither a file nor a folder"},
		{"a pipe for a seal", func(t *testing.T, k kept) {
			ok(t, os.Remove(k.seal))
			ok(t, syscall.Mkfifo(k.seal, 0o600))
		}, "is not a file"},
		{"a file that others may read", func(t *testing.T, k kept) { ok(t, os.Chmod(k.compiled, 0o644)) }, "mode 0644"},
		{"a seal that others may write", func(t *testing.T, k kept) { ok(t, os.Chmod(k.seal, 0o622)) }, "mode 0622"},
		{"a folder that others may read", func(t *testing.T, k kept) { ok(t, os.Chmod(k.folder, 0o755)) }, "mode 0755"},
		{"no key", func(t *testing.T, k kept) { ok(t, os.Remove(filepath.Join(k.cache, "key"))) }, "lost its key"},
		{"the key of another cache", func(t *testing.T, k kept) {
			write(t, filepath.Join(k.cache, "key"), read(t, filepath.Join(newCache(t, guests.Noop), "key")))
		}, "does not fit"},
		{"code of another cache", func(t *testing.T, k kept) {
			other := findKept(t, newCache(t, guests.Echo))
			write(t, k.compiled, read(t, other.compiled))
			write(t, k.seal, read(t, other.seal))
		}, "does not fit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := newCache(t, guests.Echo)
			tc.damage(t, findKept(t, dir))
			if log := runCached(t, dir, guests.Echo); strings.Count(log, "\n") != 1 || !strings.Contains(log, tc.want) {
				t.Errorf("log: %q", log)
			}
			if log := runCached(t, dir, guests.Echo); log != "" {
				t.Errorf("afterwards: %s", log)
			}
			findKept(t, dir)
		})
	}
}

// TestCacheKeyDamage: a key that can't be trusted is replaced, and with it
// everything that it sealed.
func TestCacheKeyDamage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		damage func(t *testing.T, key string)
	}{
		{"cut off", func(t *testing.T, key string) { truncate(t, key, -1) }},
		{"longer", func(t *testing.T, key string) { truncate(t, key, 1) }},
		{"readable by others", func(t *testing.T, key string) { ok(t, os.Chmod(key, 0o644)) }},
		{"a link", func(t *testing.T, key string) {
			ok(t, os.Rename(key, key+"2"))
			ok(t, os.Symlink(key+"2", key))
		}},
		{"a folder", func(t *testing.T, key string) {
			ok(t, os.Remove(key))
			ok(t, os.Mkdir(key, 0o700))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := newCache(t, guests.Echo)
			key := filepath.Join(dir, "key")
			before := read(t, key)
			tc.damage(t, key)
			log := runCached(t, dir, guests.Echo)
			if strings.Count(log, "\n") != 2 || !strings.Contains(log, "is damaged") || !strings.Contains(log, "lost its key") {
				t.Errorf("log: %s", log)
			}
			if after := read(t, key); len(after) != 32 || bytes.Equal(after, before) {
				t.Error("the key is as it was")
			}
			if info, err := os.Lstat(key); err != nil || info.Mode() != 0o600 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			if log := runCached(t, dir, guests.Echo); log != "" {
				t.Errorf("afterwards: %s", log)
			}
		})
	}
}

// TestCacheSwapped: the code of one plugin doesn't run as another's, with its own
// seal or not.
func TestCacheSwapped(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		swap func(t *testing.T, a, b kept)
	}{
		{"content", func(t *testing.T, a, b kept) { swap(t, a.compiled, b.compiled) }},
		{"seals", func(t *testing.T, a, b kept) { swap(t, a.seal, b.seal) }},
		{"folders", func(t *testing.T, a, b kept) { swap(t, a.folder, b.folder) }},
		{"content and seals", func(t *testing.T, a, b kept) {
			swap(t, a.compiled, b.compiled)
			swap(t, a.seal, b.seal)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := newCache(t, guests.Echo)
			echo := findKept(t, dir)
			runCached(t, dir, guests.Noop)
			tc.swap(t, echo, findKept(t, dir, echo))
			for _, guest := range [][]byte{guests.Echo, guests.Noop} {
				if log := runCached(t, dir, guest); strings.Count(log, "\n") != 1 || !strings.Contains(log, "does not fit") {
					t.Errorf("log: %s", log)
				}
			}
		})
	}
}

func swap(t *testing.T, a, b string) {
	t.Helper()
	ok(t, os.Rename(a, a+".swap"))
	ok(t, os.Rename(b, a))
	ok(t, os.Rename(a+".swap", b))
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	ok(t, err)
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	ok(t, os.WriteFile(path, b, 0o600))
}

// truncate makes a file longer or shorter.
func truncate(t *testing.T, path string, by int64) {
	t.Helper()
	info, err := os.Stat(path)
	ok(t, errors.Join(err, os.Truncate(path, info.Size()+by)))
}

// TestCacheUnreadable: what this user can't read is treated as damaged. Root
// can read everything.
func TestCacheUnreadable(t *testing.T) {
	t.Parallel()
	for _, find := range []func(kept) string{
		func(k kept) string { return k.compiled },
		func(k kept) string { return k.seal },
		func(k kept) string { return filepath.Join(k.cache, "key") },
	} {
		dir := newCache(t, guests.Echo)
		path := find(findKept(t, dir))
		ok(t, os.Chmod(path, 0))
		log := runCached(t, dir, guests.Echo)
		if (os.Geteuid() == 0) != (log == "") || log != "" && !strings.Contains(log, "permission denied") {
			t.Errorf("log: %s", log)
		}
		if log := runCached(t, dir, guests.Echo); log != "" {
			t.Errorf("afterwards: %s", log)
		}
	}
}
