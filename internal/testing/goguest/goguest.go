// Package goguest builds Go guests for tests, so that `go test` needs no `make` before it.
// Compiled packages come from Go's build cache, which packages tested at the same time may
// share; linking takes some tenths of a second.
package goguest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
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

// Build builds the guest in a folder and returns the module.
func Build(folder string, mode Mode) ([]byte, error) {
	dir, err := os.MkdirTemp("", "jobhost-guest-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-buildmode="+string(mode), "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	cmd.Dir = folder
	// With the commit in it a guest would differ after each, and no cache would have compiled it yet.
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-buildvcs=false")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w\n%s", folder, err, text)
	}
	return os.ReadFile(out)
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
	var mu sync.Mutex // protects all
	var builds errgroup.Group
	builds.SetLimit(2) // each build uses several threads itself
	for name, mode := range examples {
		builds.Go(func() error {
			module, err := Build(filepath.Join(root, "plugins", "examples", name), mode)
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
