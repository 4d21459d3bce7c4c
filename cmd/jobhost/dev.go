package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/internal/watch"
)

// devQuiet is how long files must be left alone before they are looked at:
// longer than compilers pause while they write, shorter than people notice.
const devQuiet = 100 * time.Millisecond

func newDevCommand(e *env) *cobra.Command {
	d := &dev{env: e, buildTime: duration(5 * time.Minute)}
	cmd := &cobra.Command{
		Use:   "dev [DIR...]",
		Short: "Run the host, and rebuild and swap workers when files change",
		Long: `Run the host, and rebuild and swap workers when files change.

It is jobhost run for those who write workers. The manifest, the plugins' files
and, for workers that have a build in the manifest, the folders of their plugins
are watched; so is each DIR, on whose changes all builds run. A build is a
command line: it runs in the plugin's folder, and its output is shown. A plugin
or manifest with other contents than before is loaded beside what runs and takes
its place when it works; otherwise the fault is shown and the old one runs on.
What workers log is shown when an attempt ends.`,
		Example: `  jobhost dev
  jobhost dev -f examples/manifest.toml ./shared`,
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd.Context(), args) },
	}
	cmd.Flags().Var(&d.buildTime, "build-timeout", "`DURATION` after which a build is stopped; 0s = never")
	return cmd
}

// dev watches files and keeps the host up to date with them.
type dev struct {
	env       *env
	buildTime duration
	dirs      []string // that were named, absolute
	manifest  *manifest.Manifest
	watcher   *watch.Watcher
}

func (d *dev) run(ctx context.Context, dirs []string) (err error) {
	for _, dir := range dirs {
		abs, err := filepath.Abs(d.env.path(dir))
		if err != nil {
			return fmt.Errorf("find %s: %w", dir, err)
		}
		d.dirs = append(d.dirs, abs)
	}
	if d.manifest, err = manifest.LoadUnbuilt(d.env.manifestPath()); err != nil {
		return err
	}
	if d.watcher, err = watch.New(devQuiet); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.watcher.Close()) }()
	if err := d.aim(); err != nil {
		return err
	}
	building, stop := untilInterrupt(ctx)
	d.buildAll(building, d.manifest.Workers)
	interrupted := building.Err() != nil
	stop()
	if interrupted {
		return errReported
	}
	m, err := manifest.LoadUnpinned(d.env.manifestPath())
	if err != nil {
		return err
	}
	return runHost(ctx, d.env, m, runOptions{
		companions:  map[string]companion{"watch": d.watch, "tail": d.tail},
		hangupStops: true, // nobody is left to look at it
	})
}

// aim points the watcher at what the manifest names.
func (d *dev) aim() error {
	path, err := filepath.Abs(d.env.manifestPath())
	if err != nil {
		return fmt.Errorf("find the manifest: %w", err)
	}
	t := watch.Targets{Files: []string{path}, Trees: d.dirs}
	if m := d.manifest; m != nil {
		t.Skip = []string{m.Host.Data}
		if m.Host.Store.Dir != "" {
			t.Skip = append(t.Skip, m.Host.Store.Dir)
		}
		for i := range m.Workers {
			w := &m.Workers[i]
			t.Files = append(t.Files, w.Plugin)
			if w.Build != "" {
				t.Trees = append(t.Trees, filepath.Dir(w.Plugin))
			}
		}
		t.Files = slices.AppendSeq(t.Files, maps.Values(m.WorkflowFiles))
	}
	return d.watcher.Set(t)
}

// watch deals with changes of files until ctx ends.
func (d *dev) watch(ctx context.Context, h *host.Host) error {
	for {
		changed, err := d.watcher.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it is the end that was waited for
		case err != nil:
			return err
		}
		if err := d.changed(ctx, h, changed); err != nil {
			return err
		}
	}
}

// changed builds what the files are sources of, and reloads what they are
// plugins of, each by itself, so that one that is broken doesn't hold up others;
// or everything, if the manifest is another. What a build has written comes as
// a change of its own.
func (d *dev) changed(ctx context.Context, h *host.Host, paths []string) error {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = shortPath(path)
	}
	d.env.note("%s changed", listed(names))
	all := false
	manifestPath, _ := filepath.Abs(d.env.manifestPath()) // it was found before
	isManifest := func(path string) bool {
		return path == manifestPath || slices.Contains(slices.Collect(maps.Values(d.manifest.WorkflowFiles)), path)
	}
	if slices.ContainsFunc(paths, isManifest) {
		all = true
		// A faulty one leaves the old targets; the reload tells what is wrong.
		if m, err := manifest.LoadUnbuilt(manifestPath); err == nil {
			fresh := unknownBuilds(d.manifest, m)
			d.manifest = m
			if err := d.aim(); err != nil {
				return err
			}
			d.buildAll(ctx, fresh)
		}
	}
	var stale []manifest.Worker
	var swap []string
	for _, w := range d.manifest.Workers {
		if slices.Contains(paths, w.Plugin) {
			swap = append(swap, w.Name)
		}
		if w.Build != "" && slices.ContainsFunc(paths, func(path string) bool { return d.isSource(&w, path) }) {
			stale = append(stale, w)
		}
	}
	d.buildAll(ctx, stale)
	if all {
		swap = []string{""}
	}
	for _, name := range swap {
		d.reload(ctx, h, name)
	}
	return nil
}

// unknownBuilds returns the workers of next whose build was another one before.
func unknownBuilds(before, next *manifest.Manifest) []manifest.Worker {
	var fresh []manifest.Worker
	for _, w := range next.Workers {
		same := func(b manifest.Worker) bool { return b.Build == w.Build && b.Plugin == w.Plugin }
		if w.Build != "" && !slices.ContainsFunc(before.Workers, same) {
			fresh = append(fresh, w)
		}
	}
	return fresh
}

// isSource reports whether a file may have a part in a worker's build: neither
// the manifest nor a plugin is a source.
func (d *dev) isSource(w *manifest.Worker, path string) bool {
	if path == filepath.Join(d.manifest.Dir, filepath.Base(d.env.manifestPath())) {
		return false
	}
	if slices.ContainsFunc(d.manifest.Workers, func(other manifest.Worker) bool { return other.Plugin == path }) {
		return false
	}
	for _, dir := range append([]string{filepath.Dir(w.Plugin)}, d.dirs...) {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// reload swaps a worker, or all of them, and says what came of it.
func (d *dev) reload(ctx context.Context, h *host.Host, name string) {
	began := d.env.now()
	report, err := h.Reload(ctx, name)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		d.env.report(err)
		d.env.note("nothing was swapped; what ran runs on")
		return
	}
	for _, w := range report.Workers {
		if w.Change != jobhost.WorkerUnchanged {
			d.env.note("worker %s: %s, version %d, %v", w.Name, w.Change, w.Version, d.env.now().Sub(began).Round(time.Millisecond))
		}
	}
	for _, setting := range report.NeedsRestart {
		d.env.note("%s has changed in the manifest; it needs a restart", setting)
	}
}

// listed names a few things in a row.
func listed(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
