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

This is jobhost run for developing workers. It watches the manifest, the plugins
and, for workers that have a build in the manifest, the folders of their plugins.
It also watches each DIR, whose changes start all builds. Files that .gitignore
names, logs, documents, test cases, editors' files and the output of tools are not
sources, nor are files that turn out to play no part in a build or to be written
by it. A build is a command line: it runs in the plugin's folder, and its output is
shown. A plugin or manifest that has changed is loaded beside the running one and
replaces it if it works; otherwise the error is shown and the old one keeps running.
Logs of workers are shown when an attempt ends. If the manifest names no port and
7070 is taken, any free port is used.`,
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
	sources   sources
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
		services:    map[string]service{"watch": d.watch, "tail": d.tail},
		hangupStops: true, // its user is gone
		// So that several projects, whose manifests name no port, can be worked on at a time.
		spare: strings.TrimPrefix(defaultAddr, "http://"),
	})
}

// aim points the watcher at what the manifest names.
func (d *dev) aim() error {
	path, err := filepath.Abs(d.env.manifestPath())
	if err != nil {
		return fmt.Errorf("find the manifest: %w", err)
	}
	t := watch.Targets{Files: []string{path}, Trees: d.dirs, Skip: slices.Clone(d.sources.dropped), Own: d.env.ownFiles()}
	if m := d.manifest; m != nil {
		t.Skip = append(t.Skip, written(m)...)
		for i := range m.Workers {
			w := &m.Workers[i]
			t.Files = append(t.Files, w.Path)
			if w.Build != "" {
				t.Trees = append(t.Trees, filepath.Dir(w.Path))
			}
		}
		t.Files = slices.AppendSeq(t.Files, maps.Values(m.WorkflowFiles))
	}
	return d.watcher.Set(t)
}

// watch deals with changes of files until ctx ends.
func (d *dev) watch(ctx context.Context, h *readyHost) error {
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
func (d *dev) changed(ctx context.Context, h *readyHost, paths []string) error {
	var ofManifest, ofBuilds []string
	for _, path := range paths {
		switch {
		case d.isManifest(path):
			ofManifest = append(ofManifest, path)
		case slices.ContainsFunc(d.manifest.Workers, func(w manifest.Worker) bool { return w.Build != "" && d.isSource(&w, path) }):
			ofBuilds = append(ofBuilds, path)
		}
	}
	ofBuilds, made := d.sources.pick(ofBuilds, d.env.now())
	if len(made) > 0 {
		d.env.note("%s changes with every build, so the build is taken to write it: changes that come with a build are passed over", shortList(made))
	}
	if all := append(slices.Clone(ofManifest), ofBuilds...); len(all) > 0 {
		d.env.note("%s changed", shortList(all))
	}
	if len(ofManifest) > 0 {
		if err := d.manifestChanged(ctx); err != nil {
			return err
		}
	}
	if err := d.buildChanged(ctx, ofBuilds); err != nil {
		return err
	}
	if len(ofManifest) > 0 {
		d.reload(ctx, h, "")
		return nil
	}
	for _, w := range d.manifest.Workers {
		if slices.Contains(paths, w.Path) {
			d.reload(ctx, h, w.Name)
		}
	}
	return nil
}

// isManifest reports whether a file is the manifest or a part of it.
func (d *dev) isManifest(path string) bool {
	manifestPath, _ := filepath.Abs(d.env.manifestPath()) // it was found before
	return path == manifestPath || slices.Contains(slices.Collect(maps.Values(d.manifest.WorkflowFiles)), path)
}

// manifestChanged takes the targets and the builds that are new from the manifest. A faulty
// one leaves the old ones; the reload tells what is wrong.
func (d *dev) manifestChanged(ctx context.Context) error {
	m, err := manifest.LoadUnbuilt(d.env.manifestPath())
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	fresh := unknownBuilds(d.manifest, m)
	d.manifest = m
	if err := d.aim(); err != nil {
		return err
	}
	d.buildAll(ctx, fresh)
	return nil
}

// buildChanged builds what the files are sources of. If that made the same plugins as before,
// and no file is code, none of them is a source.
func (d *dev) buildChanged(ctx context.Context, paths []string) error {
	var stale []manifest.Worker
	for _, w := range d.manifest.Workers {
		if w.Build != "" && slices.ContainsFunc(paths, func(path string) bool { return d.isSource(&w, path) }) {
			stale = append(stale, w)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	before := digests(stale)
	if !d.buildAll(ctx, stale) || slices.ContainsFunc(paths, isCode) || !slices.Equal(digests(stale), before) {
		return nil
	}
	d.sources.dropped = append(d.sources.dropped, paths...)
	parts := "has"
	if len(paths) > 1 {
		parts = "have"
	}
	d.env.note("%s %s no part in the build: not watched any more", shortList(paths), parts)
	return d.aim()
}

// unknownBuilds returns the workers of next whose build was another one before.
func unknownBuilds(before, next *manifest.Manifest) []manifest.Worker {
	var fresh []manifest.Worker
	for _, w := range next.Workers {
		same := func(b manifest.Worker) bool { return b.Build == w.Build && b.Path == w.Path }
		if w.Build != "" && !slices.ContainsFunc(before.Workers, same) {
			fresh = append(fresh, w)
		}
	}
	return fresh
}

// reload swaps a worker, or all of them, and says what came of it.
func (d *dev) reload(ctx context.Context, h *readyHost, name string) {
	began := d.env.now()
	defer func() { d.sources.swapped = d.env.now() }()
	report, err := h.Reload(ctx, name)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		d.env.report(err)
		d.env.note("nothing was swapped: the version before keeps running")
		return
	}
	same := func(w jobhost.WorkerReload) bool { return w.Change == jobhost.WorkerUnchanged }
	if report.Workers = slices.DeleteFunc(report.Workers, same); name == "" && len(report.Workers) == 0 {
		d.env.note("the manifest is fine, and no worker has changed")
	}
	for _, w := range report.Workers {
		d.env.note("worker %s: %s, version %d, %v", w.Name, w.Change, w.Version, d.env.now().Sub(began).Round(time.Millisecond))
	}
	for _, setting := range report.NeedsRestart {
		d.env.note("%s has changed in the manifest; it needs a restart", setting)
	}
}

// shortList names a few files in a row.
func shortList(paths []string) string {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = shortPath(path)
	}
	return listed(names)
}

// listed names a few things in a row.
func listed(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
