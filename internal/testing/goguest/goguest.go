// Package goguest builds guests in Go for tests, so that `go test` needs no `make` before
// it. Each is built once for all packages and runs of tests, until its sources change.
package goguest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/jobhost/jobhost/internal/testing/buildcache"
)

// Mode is how a guest is built.
type Mode string

// Workers are libraries, commands are programs with a main function.
const (
	Worker  Mode = "c-shared"
	Command Mode = "exe"
)

// examples are those in plugins/examples that are written in Go. The Makefile lists them,
// too, for `make build`.
var examples = map[string]Mode{
	"chat-room": Worker, "csvstats": Command, "etl": Worker, "fetch": Worker, "image-thumbnails": Worker, "loganalyzer": Worker,
	"order-approval": Worker, "partitioned-ingest": Worker, "resilient-fetch": Worker, "scrape-defer": Worker, "visits": Worker,
	"webhook-fanout": Worker, "wordcount": Worker,
}

// flags are those of `go build`, besides the mode: the same sources make the same module in every folder.
var flags = []string{"-trimpath", "-ldflags=-s -w"}

// environment is that of builds. With the commit in it a guest would be another one after each, which no cache has compiled yet.
func environment() []string {
	return append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-buildvcs=false")
}

// Build returns the module of the guest in a folder. It is built where no test has done so since its sources changed.
func Build(folder string, mode Mode) ([]byte, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	sources, err := digests(folder)
	if err != nil {
		return nil, err
	}
	return build(folder, mode, sources[0])
}

// build is Build for sources with this digest.
func build(folder string, mode Mode, sources []byte) ([]byte, error) {
	return buildcache.File(key(mode, sources), func(out string) error {
		cmd := exec.CommandContext(context.Background(), "go", append(append([]string{"build", "-buildmode=" + string(mode), "-o", out}, flags...), ".")...)
		cmd.Dir, cmd.Env = folder, environment()
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", folder, err, text)
		}
		return nil
	})
}

// key is the digest of all that the bytes of a module depend on.
func key(mode Mode, sources []byte) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s %s %q %q %q %x", runtime.Version(), mode, flags, os.Getenv("GOWASM"), os.Getenv("GOEXPERIMENT"), sources)
	return hex.EncodeToString(h.Sum(nil))
}

// Examples returns the modules of the examples by name, such as wordcount: those that
// are checked in, and those in Go, which are built from their current sources. With
// -short there are only those that are checked in or were built by `make`. The caller
// must not modify them.
var Examples = sync.OnceValues(func() (map[string][]byte, error) {
	all, err := Prebuilt()
	if err != nil || short() {
		return all, err
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	names, folders := slices.Sorted(maps.Keys(examples)), []string{}
	for _, name := range names {
		folders = append(folders, filepath.Join(root, "plugins", "examples", name))
	}
	sources, err := digests(folders...)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex // protects all
	var builds errgroup.Group
	builds.SetLimit(2) // each build uses several threads itself
	for i, name := range names {
		builds.Go(func() error {
			module, err := build(folders[i], examples[name], sources[i])
			mu.Lock()
			defer mu.Unlock()
			all[name] = module
			return err
		})
	}
	return all, builds.Wait()
})

// Prebuilt returns the modules of the examples that need no build: those that are checked in.
func Prebuilt() (map[string][]byte, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(root, "plugins", "examples", "*", "*.wasm"))
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, path := range paths {
		name := filepath.Base(filepath.Dir(path))
		if _, inGo := examples[name]; inGo && !short() {
			continue // it may be older than its sources
		}
		if all[name], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// short reports whether tests should be quick. A test's own child process has no such flags.
func short() bool { return flag.Parsed() && testing.Short() }

// Root returns the folder of the repository, for a test in one of its packages.
func Root() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); !errors.Is(err, fs.ErrNotExist) {
			return dir, err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("there is no go.mod above the working directory")
		}
		dir = parent
	}
	return "", err
}
