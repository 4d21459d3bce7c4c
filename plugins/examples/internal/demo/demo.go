package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jobhost/jobhost/plugins/examples/internal/site"
)

// example is what differs between the examples.
type example struct {
	site string // its address, as in the manifest; empty = it needs none
	api  string // that of the host
	play func(ctx context.Context, d *demo) error
}

// demo is a run of an example.
type demo struct {
	example
	name            string
	program, folder string
	stdout, stderr  io.Writer
	pages           site.Site
}

// startTimeout is how long a host may take to start. The first time it compiles
// the plugin, which takes some seconds.
const startTimeout = time.Minute

// run serves the site, if there is one, and the host, plays the example, and ends both.
func (d *demo) run(ctx context.Context) error {
	if d.site == "" {
		return d.host(ctx)
	}
	return d.serve(ctx)
}

// serve serves the site while the host runs.
func (d *demo) serve(ctx context.Context) (err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", d.site)
	if err != nil {
		return fmt.Errorf("serve the site: %w", err)
	}
	server := &http.Server{Handler: &d.pages, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		err = errors.Join(err, server.Close())
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
	}()
	return d.host(ctx)
}

// host runs a host and plays the example.
func (d *demo) host(ctx context.Context) (err error) {
	var log bytes.Buffer
	host := exec.CommandContext(ctx, d.program, "run", "-f", d.manifest())
	host.Stderr = &log
	host.Cancel = func() error { return host.Process.Signal(os.Interrupt) }
	host.WaitDelay = 20 * time.Second
	ctx, end := context.WithCancel(ctx)
	defer end()
	if err := host.Start(); err != nil {
		return fmt.Errorf("start the host: %w; make build makes it", err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- host.Wait()
		end()
	}()
	if err = d.ready(ctx); err == nil {
		err = d.play(ctx, d)
	}
	_ = host.Process.Signal(os.Interrupt) // it may already have ended
	if hostErr := <-ended; hostErr != nil || err != nil {
		return fmt.Errorf("%w\nthe host's log:\n%s", errors.Join(err, hostErr), log.Bytes())
	}
	return nil
}

func (d *demo) manifest() string { return filepath.Join(d.folder, d.name, "manifest.toml") }

// ready waits until the host is ready.
func (d *demo) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.api+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := new(http.Client).Do(r)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("wait for the host: %w", err)
		}
	}
}

// pause waits a little.
func pause(ctx context.Context) error {
	select {
	case <-time.After(50 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// quiet runs jobhost with arguments and returns what it printed.
func (d *demo) quiet(ctx context.Context, args ...string) (string, error) {
	args = append(args, "-f", d.manifest(), "--addr", "http://"+d.api)
	cmd := exec.CommandContext(ctx, d.program, args...)
	cmd.Stderr = d.stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("jobhost %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// jobhost is quiet, and shows the command and what it printed.
func (d *demo) jobhost(ctx context.Context, args ...string) error {
	fmt.Fprintf(d.stdout, "$ jobhost")
	for _, arg := range args {
		if strings.HasPrefix(arg, "{") || strings.ContainsAny(arg, " ?") {
			arg = "'" + arg + "'"
		}
		fmt.Fprint(d.stdout, " ", arg)
	}
	fmt.Fprintln(d.stdout)
	out, err := d.quiet(ctx, args...)
	if out != "" {
		fmt.Fprintln(d.stdout, strings.TrimSuffix(out, "\n"))
	}
	return err
}
