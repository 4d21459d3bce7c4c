package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/config"
	"github.com/jobhost/jobhost/host/manifest"
)

// builder returns a dev with a console and a worker of that build.
func builder(t *testing.T, command string) (*dev, *console, *manifest.Worker) {
	t.Helper()
	c := newConsole(t, struct{ jobhost.Server }{})
	c.env.now = time.Now
	w := &manifest.Worker{Worker: config.Worker{Name: "w", Path: filepath.Join(c.env.dir, "w.wasm")}, Build: command}
	return &dev{env: c.env, buildTime: duration(time.Minute)}, c, w
}

func TestBuildShowsItsOutput(t *testing.T) {
	t.Parallel()
	d, c, w := builder(t, `pwd; printf 'one\n\033[31mred\ntwo' >&2; touch w.wasm`)
	if err := d.build(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"w | " + c.env.dir + "\n", "w | one\n", `w | \x1b[31mred`, "w | two\n"} {
		if !strings.Contains(c.errOut.String(), want) {
			t.Errorf("the output has no %q: %q", want, c.errOut.String())
		}
	}
	if _, err := os.Stat(w.Path); err != nil {
		t.Error(err)
	}
}

func TestBuildFails(t *testing.T) {
	t.Parallel()
	d, _, w := builder(t, "exit 3")
	if err := d.build(t.Context(), w); err == nil || err.Error() != "the build of w failed: exit status 3" {
		t.Errorf("build: %v", err)
	}
	w.Path = "/nowhere/w.wasm"
	if err := d.build(t.Context(), w); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("build in a folder that isn't there: %v", err)
	}
}

// A build that is stopped takes the processes with it that it started.
func TestBuildIsKilledWithItsGroup(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, command string
		limit         time.Duration
		want          string // the error; "" = none
	}{
		{"takes too long", "exec 3>fifo; sleep 1000 & sleep 1000", 50 * time.Millisecond, "was stopped: it took longer than 50ms"},
		{"dev ends", "exec 3>fifo; sleep 1000 & sleep 1000", time.Minute, "was stopped: context canceled"},
		{"leaves one behind", "exec 3>fifo; sleep 1000 >/dev/null 2>&1 &", time.Minute, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, c, w := builder(t, tt.command)
			d.buildTime = duration(tt.limit)
			fifo := filepath.Join(c.env.dir, "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- d.build(ctx, w) }()
			// Opening waits for the build, which may be stopped before it comes to it if
			// it has little time, and reading for the end of all who have it open.
			flags := os.O_RDONLY
			if tt.limit < time.Minute {
				flags |= syscall.O_NONBLOCK
			}
			r, err := os.OpenFile(fifo, flags, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if tt.want != "" && tt.limit == time.Minute {
				cancel()
			}
			err = <-ended
			if n, _ := r.Read(make([]byte, 1)); n != 0 {
				t.Error("something was written")
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("build: %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSourcesOfABuild(t *testing.T) {
	t.Parallel()
	d, c, w := builder(t, "make")
	dir := c.env.dir
	c.env.options.manifest = filepath.Join(dir, "manifest.toml")
	d.manifest = &manifest.Manifest{Dir: dir, Workers: []manifest.Worker{*w, {Worker: config.Worker{Name: "v", Path: filepath.Join(dir, "v.wasm")}}}}
	d.dirs = []string{"/shared"}
	for path, want := range map[string]bool{
		filepath.Join(dir, "main.go"): true, filepath.Join(dir, "deep/x.c"): true, "/shared/y.h": true,
		w.Path: false, filepath.Join(dir, "v.wasm"): false, filepath.Join(dir, "manifest.toml"): false, "/elsewhere/x.go": false,
	} {
		if got := d.isSource(w, path); got != want {
			t.Errorf("%s is a source: %v, want %v", path, got, want)
		}
	}
}

func TestDevNeedsAManifest(t *testing.T) {
	t.Parallel()
	c := newConsole(t, struct{ jobhost.Server }{})
	if code := c.run(t, "dev"); code != exitFailed || !strings.Contains(c.errOut.String(), "does not exist") {
		t.Errorf("exit code %d, stderr %q", code, c.errOut.String())
	}
}

// A build ends with dev however that ends, with everything that the build has started.
func TestBuildEndsWithAKilledDev(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "[host]\nstore = \"mem:\"\nlisten = \"127.0.0.1:0\"\n[worker.w]\nplugin = \"w.wasm\"\nbuild = \"exec 4>fifo; sleep 1000 & sleep 1000\"\n"
	fifo := filepath.Join(dir, "fifo")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "manifest.toml"), []byte(text), 0o600), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	dev := exec.CommandContext(t.Context(), filepath.Join(installProgram(t), programName), "dev")
	dev.Dir, dev.Stderr, dev.WaitDelay = dir, t.Output(), time.Second
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		r, err := os.Open(fifo) // which waits for the build
		if err == nil {
			err = dev.Process.Kill()
			_, _ = r.Read(make([]byte, 1)) // which waits for the end of all who have it open
			_ = r.Close()
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the build runs on")
	}
	_ = dev.Process.Kill()
	_ = dev.Wait() // it was killed
}
