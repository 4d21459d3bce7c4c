package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/netproxy/policy"
	"github.com/jobhost/jobhost/runtime"
)

// execFlags are the flags of exec.
type execFlags struct {
	lines, text bool
	parallel    int
	entry       string
	timeout     time.Duration
	config      map[string]string
	abi         string
	features    []string
	mounts      []string
	env         []string
	jobEnv      bool
	limits      limitFlags
	allow       []string
	private     []string
	arguments   []string
	quiet       bool
}

func newExecCommand(e *env) *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:   "exec WORKER|FILE [INPUT…]",
		Short: "Run inputs through a worker here and now, without a server or a store",
		Long: `Run inputs through a worker here and now, without a server or a store.

The worker is one of the manifest, with all that it is granted there, or a
file: a module, or the JSON of an Extism plugin, which is granted nothing but
what --arg, --env, --config, --mount, --allow and --feature say. They add to what a
worker of the manifest has. Limits are as in a manifest, or as --memory,
--compile-memory, --output-limit and --timeout say.

Each INPUT is a file whose content is one input; "-" is the standard input, and
so is no INPUT at all. With --lines each line of them is one input, with --text
each INPUT is one itself. A WASI command finds it on its standard input. Results
are printed in the order of the inputs, each ended by a newline. Failures and
logs go to the standard error output, and on a terminal how far it is. The exit
code is 1 when any input failed, or when Ctrl-C ended it before the last one.`,
		Example: `  jobhost exec plugins/examples/wordcount/wordcount.wasm README.md
  cat *.md | jobhost exec vowels --lines -j 4
  jobhost exec vowels --text "hello world"
  jobhost exec csvstats.wasm --arg -d --arg ';' table.csv
  jobhost exec crc32.wasm --mount docs:/docs --arg /docs/wasi.md </dev/null`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runExec(cmd.Context(), e, &f, args[0], args[1:])
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.lines, "lines", "l", false, "each line is one input")
	flags.BoolVar(&f.text, "text", false, "each INPUT is the input itself, not the name of a file")
	flags.IntVarP(&f.parallel, "jobs", "j", goruntime.GOMAXPROCS(0), "`NUMBER` of inputs to run at once, each in a sandbox of its own")
	flags.StringVar(&f.entry, "entry", "", "the `EXPORT` to call (default: the worker's, or the ABI's own)")
	flags.DurationVar(&f.timeout, "timeout", 0, "`DURATION` that one input may take (default: the worker's, or 30s)")
	flags.StringToStringVar(&f.config, "config", nil, "a setting for the worker, as `KEY=VALUE`; may be given several times")
	flags.StringVar(&f.abi, "abi", "", "how to talk to the module, as a `NAME`: auto, jobhost, wasi, extism or process (default: the worker's, or auto)")
	featureFlag(cmd, &f.features)
	f.limits = newLimitFlags(cmd, "memory", "compile_memory", "output")
	flags.StringArrayVar(&f.env, "env", nil, "a variable for the environment of the module, as `NAME=VALUE`; may be given several times")
	flags.BoolVar(&f.jobEnv, "job-env", true, "whether a WASI command finds the variables JOBHOST_… in its environment; --job-env=false = it doesn't")
	flags.StringArrayVar(&f.arguments, "arg", nil, "an `ARGUMENT` for a WASI command, behind those of the worker; may be given several times")
	flags.StringArrayVar(&f.mounts, "mount", nil, "a folder that the module may read, as `FOLDER:PATH`: PATH is where it finds it; FOLDER:PATH:rw = it may change it, too")
	flags.StringArrayVar(&f.allow, "allow", nil, "where HTTP requests may go, as a `RULE` such as https://api.example.com; may be given several times")
	flags.StringArrayVar(&f.private, "allow-private", nil, "a `RANGE` of addresses that rules may lead to although they are not of the internet, such as 127.0.0.1")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print no logs of the worker, no progress and no summary")
	flags.Lookup("config").DefValue = "" // not []
	cmd.MarkFlagsMutuallyExclusive("lines", "text")
	return cmd
}

func runExec(ctx context.Context, e *env, f *execFlags, name string, args []string) (err error) {
	if f.parallel < 1 || f.parallel > 1024 {
		return usagef("--jobs %d is not between 1 and 1024", f.parallel)
	}
	w, err := execWorker(e, name)
	if err != nil {
		return err
	}
	if f.entry != "" {
		w.Entry = f.entry
	}
	if err := f.apply(e, &w); err != nil {
		return err
	}
	if f.timeout > 0 {
		w.Limits.Timeout = f.timeout
	}
	for k, v := range f.config {
		w.Config[k] = v
	}
	engine, err := openUserEngine()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close(context.WithoutCancel(ctx))) }()
	plugin, err := engine.Load(ctx, w.Source())
	if err != nil {
		return orByFlag(orByProcess(err, &w), e.isFile(name))
	}
	inputs := &inputs{env: e, flags: f, args: args}
	if len(args) == 0 {
		inputs.args = []string{"-"}
	}
	b := &batch{env: e, flags: f, worker: w, plugin: plugin}
	if w.HTTP != nil {
		if b.http, err = w.HTTP.Open(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.http.Stop(0)) }()
	}
	// Not before: nothing is lost when a compilation is killed.
	ctx, stop := interruptible(ctx)
	defer stop()
	return b.run(ctx, inputs)
}

// orByProcess says of a script that was taken for a module how to run it.
func orByProcess(err error, w *host.Worker) error {
	if e, ok := errors.AsType[*jobhost.Error](err); ok && w.ABI != runtime.ABIProcess && bytes.HasPrefix(w.Plugin, []byte("#!")) {
		e.Hint = "if it is a worker as a process, say --abi process (docs/processes.md); otherwise compile it to WebAssembly (docs/abi.md)"
	}
	return err
}

// apply adds what the flags grant to the worker.
func (f *execFlags) apply(e *env, w *host.Worker) error {
	useABI(w, f.abi)
	if err := allowFeatures(w, f.features); err != nil {
		return err
	}
	if err := f.limits.apply(w); err != nil {
		return err
	}
	if err := f.applyEnv(w); err != nil {
		return err
	}
	w.System.Args = append(w.System.Args, f.arguments...)
	for _, text := range f.mounts {
		m, err := manifest.ParseMount(e.path("."), text)
		if err != nil {
			return usagef("--mount: %v", err)
		}
		w.System.Mounts = append(w.System.Mounts, m)
	}
	return f.applyHTTP(w)
}

// applyEnv adds to the environment.
func (f *execFlags) applyEnv(w *host.Worker) error {
	native := w.ABI == runtime.ABIProcess
	w.System.BareEnv = w.System.BareEnv || !f.jobEnv && !native
	w.Env = maps.Clone(w.Env) // that of a manifest isn't changed
	for _, text := range f.env {
		name, value, err := manifest.ParseVariable(text, native)
		if err != nil {
			return asUsage(&jobhost.Error{Code: jobhost.CodeInvalid, Message: fmt.Sprintf("--env: %v", err), Hint: jobhost.HintOf(err)})
		}
		if w.Env == nil {
			w.Env = map[string]string{}
		}
		w.Env[name] = value
	}
	return nil
}

// useABI sets how to talk to a worker's plugin, if that is said: a native one that has no memory of its own in a manifest has
// what the manifest would give it.
func useABI(w *host.Worker, abi string) {
	if abi == "" || abi == w.ABI {
		return
	}
	w.ABI = abi
	if abi == runtime.ABIProcess {
		w.Limits.MemoryBytes = manifest.NativeMemory
	}
}

// applyHTTP adds where the worker may go.
func (f *execFlags) applyHTTP(w *host.Worker) error {
	if len(f.allow)+len(f.private) > 0 && w.HTTP == nil {
		w.HTTP = &host.HTTP{}
	}
	for _, text := range f.allow {
		rule, err := policy.ParseRule(text)
		if err != nil {
			return usagef("--allow %s: %v", text, err)
		}
		w.HTTP.Policy.Allow = append(w.HTTP.Policy.Allow, rule)
	}
	for _, text := range f.private {
		private, err := policy.ParsePrefix(text)
		if err != nil {
			return usagef("--allow-private %s: %v", text, err)
		}
		w.HTTP.Policy.AllowPrivate = append(w.HTTP.Policy.AllowPrivate, private)
	}
	return nil
}

// openUserEngine opens an engine for a command without a host. Compiled modules
// are kept in the user's cache folder, which all projects share.
func openUserEngine() (runtime.Engine, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find a place for compiled modules: %w", err)
	}
	return openEngine(filepath.Join(dir, "jobhost"), nil, slog.New(slog.DiscardHandler))
}

// isFile reports whether a name is that of a file rather than of a worker: it
// ends as those of modules and Extism manifests do, has a folder in it, or ends
// somehow and is there.
func (e *env) isFile(name string) bool {
	extension := filepath.Ext(name)
	if extension == ".wasm" || extension == ".json" || strings.ContainsRune(name, filepath.Separator) {
		return true
	}
	info, err := os.Stat(e.path(name))
	return extension != "" && err == nil && info.Mode().IsRegular()
}

// execWorker finds the worker: a file, or a worker of the manifest.
func execWorker(e *env, name string) (host.Worker, error) {
	if e.isFile(name) {
		return fileWorker(e.path(name), name)
	}
	// What was built here a moment ago needs no new digest to be tried.
	m, err := manifest.LoadUnpinned(e.manifestPath())
	if err != nil {
		return host.Worker{}, fmt.Errorf("find worker %q: %w", name, err)
	}
	var names []string
	for i := range m.Workers {
		if m.Workers[i].Name == name {
			return host.WorkerFromManifest(m, &m.Workers[i])
		}
		names = append(names, m.Workers[i].Name)
	}
	return host.Worker{}, usagef("%s has no worker %q; it has %s", e.manifestPath(), name, strings.Join(names, ", "))
}

// fileWorker is a worker with the default limits and no grants; name is the
// path as the user wrote it.
func fileWorker(path, name string) (host.Worker, error) {
	data, err := readModule(path)
	if err != nil {
		return host.Worker{}, err
	}
	w := host.Worker{
		Name:   strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)),
		Path:   path,
		Limits: runtime.DefaultLimits(),
		Config: map[string]string{},
	}
	err = host.SetPlugin(&w, data)
	w.Path = name
	return w, err
}

// readModule reads a plugin's file, if it is a regular file of a sane size.
func readModule(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read plugin: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, usagef("read plugin: %s is not a regular file", path)
	}
	if info.Size() > manifest.MaxPluginBytes {
		return nil, asUsage(&jobhost.Error{
			Code: jobhost.CodeInvalid, Message: fmt.Sprintf("read plugin: %s has %d bytes, more than %d", path, info.Size(), manifest.MaxPluginBytes),
			Hint: "leave out debug information: strip it, or link with -s",
		})
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read plugin: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, manifest.MaxPluginBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read plugin: %w", err)
	}
	return data, nil
}
