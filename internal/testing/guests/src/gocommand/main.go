//go:build wasip1

// A WASI command in Go, for tests of what its runtime and package os need: it
// writes the payload, reversed, through a file, while a goroutine sleeps.
package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(75)
	}
}

func run() error {
	payload, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	ticked := make(chan time.Duration)
	go func() {
		start := time.Now()
		time.Sleep(3 * time.Millisecond)
		ticked <- time.Since(start)
	}()
	slices.Reverse(payload)
	dir, err := os.MkdirTemp("/data", "run-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "sub.tmp"), payload, 0o600); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, "sub.tmp"), filepath.Join(dir, "sub")); err != nil {
		return err
	}
	var seen []string
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, _ fs.DirEntry, err error) error {
		seen = append(seen, path)
		return err
	})
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "sub"))
	if err != nil {
		return err
	}
	if slept := <-ticked; slept < 3*time.Millisecond {
		return fmt.Errorf("slept %v", slept)
	}
	_, err = os.ReadFile("/data/../../etc/passwd")
	fmt.Printf("%s %v %s %t %d", text, seen, os.Getenv("JOBHOST_LABEL_KIND"), err != nil, len(os.Args))
	return nil
}
