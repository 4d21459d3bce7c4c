package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/internal/text"
)

// untilInterrupt returns a context that ends when dev is interrupted before
// there is a host; one that runs has its own way.
func untilInterrupt(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
}

// buildAll runs the builds of workers, one after the other, and says which
// failed. Workers without a build, and builds that were done for another
// worker of the same plugin, are passed over. It reports whether all went well.
func (d *dev) buildAll(ctx context.Context, workers []manifest.Worker) bool {
	type build struct{ dir, command string }
	done, ok := map[build]bool{}, true
	for i := range workers {
		w := &workers[i]
		b := build{filepath.Dir(w.Path), w.Build}
		if w.Build == "" || done[b] || ctx.Err() != nil {
			continue
		}
		done[b] = true
		began := d.env.now()
		d.env.note("building %s: %s", w.Name, w.Build)
		if err := d.build(ctx, w); err != nil {
			d.env.note("%v", err)
			ok = false
			continue
		}
		d.env.note("built %s in %v", w.Name, d.env.now().Sub(began).Round(time.Millisecond))
	}
	if len(done) > 0 {
		d.sources.built = d.env.now()
	}
	return ok && ctx.Err() == nil
}

// buildLinger is how long what a build has left behind may hold its output open.
const buildLinger = time.Second

// leashed runs the command in $0, and beside it one that waits for the end of descriptor
// 3 and then kills the group. Only dev has the other end, so that is when dev has ended,
// however it did. A death signal would reach the shell alone, and not what it runs.
// Its files are for whom the umask in $1 says, as they would be without dev.
const leashed = `umask "${1:-$(umask)}"; { read -r _; kill -KILL 0; } <&3 3<&- >/dev/null 2>&1 & exec sh -c "$0" 3<&-`

// build runs a worker's build in a process group of its own, which ends with it.
func (d *dev) build(ctx context.Context, w *manifest.Worker) error {
	if limit := time.Duration(d.buildTime); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %v", limit))
		defer cancel()
	}
	dir := filepath.Dir(w.Path)
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("the build of %s has no folder: %w", w.Name, err)
	}
	leash, end, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("the build of %s can't be started: %w", w.Name, err)
	}
	defer func() { _ = errors.Join(leash.Close(), end.Close()) }() // nothing was written
	cmd := exec.CommandContext(ctx, "sh", "-c", leashed, w.Build, d.env.umask)
	cmd.ExtraFiles = []*os.File{leash}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	killGroup := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = killGroup
	cmd.WaitDelay = buildLinger
	out := &prefixer{env: d.env, prefix: w.Name}
	cmd.Stdout, cmd.Stderr = out, out // the same one: then only one goroutine writes
	err = cmd.Start()
	if err == nil {
		err = cmd.Wait()
		_ = killGroup() // what it left behind, mostly nothing
	}
	out.flush()
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the build of %s was stopped: %w", w.Name, context.Cause(ctx))
	}
	return fmt.Errorf("the build of %s failed: %w", w.Name, err)
}

// prefixer shows lines on stderr under a name. Control characters are
// escaped, and long lines are cut into several.
type prefixer struct {
	env    *env
	prefix string
	line   []byte
}

// mostLine is how much of a line is kept before it is shown, in bytes.
const mostLine = 4 << 10

// Write implements [io.Writer].
func (p *prefixer) Write(data []byte) (int, error) {
	n := len(data)
	for len(data) > 0 {
		line, rest, ended := bytes.Cut(data, []byte("\n"))
		p.line = append(p.line, line...)
		if ended || len(p.line) > mostLine {
			p.flush()
		}
		data = rest
	}
	return n, nil
}

// flush shows what there is of a line.
func (p *prefixer) flush() {
	if len(p.line) > 0 {
		p.env.tagged(p.prefix, string(p.line))
		p.line = p.line[:0]
	}
}

// tagged shows a line of a build or a worker on stderr.
func (e *env) tagged(name, line string) {
	_, _ = fmt.Fprintf(e.stderr, "%s | %s\n", name, text.Escape(line, "\t"))
}
