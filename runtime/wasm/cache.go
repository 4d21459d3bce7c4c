package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/prune"
)

// cache keeps compiled code across restarts. Its folder contains
//
//	key        the secret that seals are made with: see cache_key.go
//	<digest>/  the code of one plugin, and its seal: see cache_folder.go
//
// and anything else its owner keeps there. wazero hardly checks what it reads
// from a cache and then runs it, so it is given a folder only after everything
// in it has been authenticated. A cache that can't be used is never a reason
// not to run a plugin: it is compiled, and its code kept in memory.
type cache struct {
	dir    string // empty = nothing is kept
	key    []byte
	logger *slog.Logger
}

// openCache opens a cache in dir, creating it privately to this user.
func openCache(dir string, logger *slog.Logger) (*cache, error) {
	none := &cache{logger: logger}
	if dir == "" {
		return none, nil
	}
	if err := makePrivate(dir); err != nil {
		return nil, err
	}
	removeOld(dir)
	if err := prune.Folders(dir); err != nil {
		logger.Warn("old compiled code can't be removed", logkey.Path, dir, logkey.Error, err)
	}
	c := &cache{dir: dir, logger: logger}
	made, err := c.loadKey()
	if err != nil {
		logger.Warn("the compile cache can't be used, so all plugins are compiled", logkey.Path, dir, logkey.Error, err)
		return none, nil
	}
	if made {
		c.removeAll()
	}
	return c, nil
}

// makePrivate makes dir a folder for this user alone.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if info.Mode().Perm() != 0o700 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// removeAll removes the code of all plugins: what was sealed with a lost key is
// worthless.
func (c *cache) removeAll() {
	entries, err := os.ReadDir(c.dir)
	errs, removed := []error{err}, 0
	for _, d := range entries {
		if prune.IsDigest(d.Name()) {
			errs = append(errs, os.RemoveAll(filepath.Join(c.dir, d.Name())))
			removed++
		}
	}
	// What can't be removed is found to be damaged when it is used.
	if removed > 0 {
		c.logger.Warn("the compile cache has lost its key, so all plugins are compiled again",
			logkey.Path, c.dir, logkey.Count, removed, logkey.Error, errors.Join(errs...))
	}
}

// enter returns the folder of a plugin's code, whose content is authentic. Nil means that none
// can be used, now or ever. The caller must leave the folder soon.
func (c *cache) enter(ctx context.Context, digest string) *folder {
	if c.dir == "" {
		return nil
	}
	f := &folder{cache: c, digest: digest, path: filepath.Join(c.dir, digest)}
	if err := f.open(ctx); err != nil {
		f.leave()
		if !errors.Is(err, errBusy) {
			c.unusable(ctx, f.path, err)
		}
		return nil
	}
	return f
}

// damaged logs why code in the cache is not used.
func (c *cache) damaged(ctx context.Context, path string, reason error) {
	c.logger.WarnContext(ctx, "the compile cache is damaged, so the plugin is compiled again", logkey.Path, path, logkey.Reason, reason)
}

// unusable logs why code is not kept.
func (c *cache) unusable(ctx context.Context, path string, err error) {
	c.logger.WarnContext(ctx, "compiled code can't be kept, so the plugin is compiled each time: is the disk full, or the folder not this user's?",
		logkey.Path, path, logkey.Error, err)
}

// touch marks code as in use, for [prune.Folders]. Sandbox processes may not
// set times, but the host does so for all code that they use.
func (c *cache) touch(digest string) {
	if c.dir != "" {
		now := time.Now()
		_ = os.Chtimes(filepath.Join(c.dir, digest, sealName), now, now)
	}
}

// isFault reports whether an error is one of the file system.
func isFault(err error) bool {
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	return path || link
}

// checkOwn checks that a file is for this user alone.
func checkOwn(name string, info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user with id %d", name, stat.Uid)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o, so others may use it", name, info.Mode().Perm())
	}
	return nil
}

// removeOld removes what earlier versions kept directly in the folder: wazero's
// files, without seals, and the verdicts of the validator. Files with other
// names are left alone, as are folders that contain any.
func removeOld(dir string) {
	entries, _ := os.ReadDir(dir) // if that fails there is nothing to remove
	for _, d := range entries {
		path := filepath.Join(dir, d.Name())
		digest, verdict := strings.CutPrefix(d.Name(), "valid-")
		switch {
		case verdict && d.Type().IsRegular() && prune.IsDigest(digest):
			_ = os.Remove(path)
		case d.IsDir() && strings.HasPrefix(d.Name(), "wazero-"):
			files, _ := os.ReadDir(path)
			for _, file := range files {
				digest, _, _ := strings.Cut(file.Name(), ".") // .tmp, if it was interrupted
				if file.Type().IsRegular() && prune.IsDigest(digest) {
					_ = os.Remove(filepath.Join(path, file.Name()))
				}
			}
			_ = os.Remove(path)
		}
	}
}

// cacheRevision changes when cached code must no longer be run.
const cacheRevision = "1"

// build describes what compiled code depends on besides the module.
func build() string {
	compiler := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		compiler = compilerIn(info)
	}
	return strings.Join([]string{"jobhost compiled code", cacheRevision, compiler, goruntime.GOOS, goruntime.GOARCH}, "\n")
}

// compilerIn says which wazero a program was built with, including what go.mod
// replaces it with. A folder as replacement has no version: after a change there,
// remove the cache.
func compilerIn(info *debug.BuildInfo) string {
	var parts []string
	for _, m := range info.Deps {
		if m.Path == "github.com/tetratelabs/wazero" {
			for ; m != nil; m = m.Replace {
				parts = append(parts, m.Path, m.Version, m.Sum)
			}
		}
	}
	return strings.Join(parts, " ")
}

// digestOf identifies the code of a plugin: by the bytes that are compiled, the
// compiler and its options.
func (e *Engine) digestOf(parts []*part) string {
	h := sha256.New()
	add := func(b []byte) {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		_, _ = h.Write(b)
	}
	add([]byte(fmt.Sprint(build(), e.polling)))
	for _, part := range parts {
		add(part.rewritten.Module)
	}
	return hex.EncodeToString(h.Sum(nil))
}
