package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/runtime"
)

// inspection is what `worker inspect` tells.
type inspection struct {
	Worker       string       `json:"worker,omitempty"` // of the manifest
	File         string       `json:"file"`
	SHA256       string       `json:"sha256"`
	Size         int          `json:"size"`
	ABI          string       `json:"abi"`
	Entry        string       `json:"entry"`
	Entries      []string     `json:"entries"`
	Linked       []string     `json:"linked,omitempty"`
	Imports      []string     `json:"imports"`
	Capabilities []capability `json:"capabilities"`
	Features     []string     `json:"features"` // that it needs
	MemoryMin    uint64       `json:"memory_min"`
	MemoryMax    uint64       `json:"memory_max,omitempty"`
	// CompileMemory is what compiling it takes, as an estimate.
	CompileMemory int64 `json:"compile_memory,omitempty"`

	Verdict   string `json:"verdict"`
	Isolation string `json:"isolation"`
	// Replaced says why sandboxes are replaced rather than reset.
	Replaced string `json:"replaced,omitempty"`
	Grants   grants `json:"grants"`
}

// grants are what the host gives the plugin when a job runs.
type grants struct {
	Memory  int64             `json:"memory"`
	Timeout jobhost.Duration  `json:"timeout"`
	Fuel    int64             `json:"fuel"` // 0 = only the timeout bounds it
	Output  int               `json:"output"`
	Log     int               `json:"log"`
	Args    []string          `json:"args"`
	Mounts  []mountGrant      `json:"mounts"`
	Clock   string            `json:"clock"`
	Config  map[string]string `json:"config"`
	Secrets []string          `json:"secrets"` // their names
	HTTP    []string          `json:"http"`    // rules
	Private []string          `json:"private"` // addresses that rules may lead to

	Features []string `json:"features"` // that it may use
}

type mountGrant struct {
	Folder string `json:"folder"`
	Path   string `json:"path"`
	Write  bool   `json:"write"`
}

// The verdicts on a module, and on a program, that can be loaded; another one is an error.
const (
	fit       = "fit to run: checked, metered and compiled"
	fitNative = "fit to run: it starts, and speaks the protocol of workers"
)

func newWorkerInspectCommand(e workerEnv) *cobra.Command {
	var entry, abi string
	var limits limitFlags
	cmd := &cobra.Command{
		Use:   "inspect WORKER|FILE",
		Short: "Show what a module is, what it asks of the host and what it gets",
		Long: `Show what a module is, what it asks of the host and what it gets.

The module is checked and compiled as by a host, and errors are reported. Its imports are the list of what it can do beyond computing: a call that
is not imported cannot be made. What it gets are the defaults for a FILE, and
what the manifest grants for a WORKER of it, of secrets only the names. A FILE
may need features that a worker must be allowed, or more memory than the default;
they are named. --memory and --compile-memory are limits to inspect it with.`,
		Example: `  jobhost worker inspect plugins/examples/vowels/vowels.wasm
  jobhost worker inspect csvstats -o json`,
		Args: exactly("WORKER|FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := execWorker(e.env, args[0])
			if err != nil {
				return err
			}
			w.Entry = cmp.Or(entry, w.Entry)
			useABI(&w, abi)
			if err := limits.apply(&w); err != nil {
				return err
			}
			return e.inspect(cmd.Context(), &w, e.isFile(args[0]) && !limits.given("memory"), e.isFile(args[0]))
		},
	}
	limits = newLimitFlags(cmd, "memory", "compile_memory")
	cmd.Flags().StringVar(&entry, "entry", "", "the `EXPORT` that will be called (default: the worker's, or the ABI's own)")
	cmd.Flags().StringVar(&abi, "abi", "", "how to talk to the module, as a `NAME`: auto, jobhost, wasi, extism or process (default: the worker's, or auto)")
	return cmd
}

// inspect loads the plugin of a worker, which may be a file; roomy says that it may have any memory, to tell how much it needs.
func (e workerEnv) inspect(ctx context.Context, w *host.Worker, roomy, file bool) (err error) {
	engine, err := openUserEngine()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close(context.WithoutCancel(ctx))) }()
	src := w.Source()
	if file { // to tell what a manifest must allow
		src.Features = runtime.Features()
	}
	plugin, err := engine.Load(ctx, src)
	if refused, ok := errors.AsType[*jobhost.Error](err); ok && roomy && refused.Field == "memory" {
		src.Limits.MemoryBytes = math.MaxInt64 // the engine knows how much there can be
		plugin, err = engine.Load(ctx, src)
	}
	if err != nil {
		return orByFlag(err, file)
	}
	i := newInspection(w, plugin.Info())
	if !file {
		i.Worker = w.Name
	}
	if e.wantsJSON() {
		return e.json(i)
	}
	e.printInspection(&i)
	return nil
}

func newInspection(w *host.Worker, info runtime.Info) inspection {
	i := inspection{
		File: w.Path, SHA256: info.SHA256, Size: info.Size, ABI: info.ABI, Entry: clipName(info.Entry),
		Entries: clipNames(info.Entries), Imports: clipNames(info.Imports), Capabilities: orEmpty(capabilities(clipNames(info.Imports))),
		MemoryMin: info.MemoryMin, MemoryMax: info.MemoryMax, CompileMemory: info.CompileMemory,
		Verdict: fit, Isolation: string(info.Isolation), Replaced: info.Replaced,
		Grants: grantsOf(w), Features: orEmpty(info.Features),
	}
	if i.ABI == runtime.ABIProcess {
		i.Verdict = fitNative
	}
	if missing := without(info.Features, w.Features); len(missing) > 0 {
		i.Verdict += "; a worker needs " + featuresText(missing)
	}
	if limits := w.Limits.OrDefaults(); info.MemoryMin > uint64(limits.MemoryBytes) {
		i.Verdict += fmt.Sprintf("; a worker needs memory = %q, or more", manifest.Size(info.MemoryMin))
	}
	for _, l := range w.Linked {
		i.Linked = append(i.Linked, clipName(l.Name))
	}
	return i
}

func grantsOf(w *host.Worker) grants {
	l := w.Limits.OrDefaults()
	g := grants{
		Memory: l.MemoryBytes, Timeout: jobhost.Duration(l.Timeout), Fuel: l.Fuel, Output: l.OutputBytes, Log: l.LogBytes,
		Args: orEmpty(w.System.Args), Mounts: []mountGrant{}, Clock: "coarse",
		HTTP: []string{}, Private: []string{}, Config: map[string]string{}, Secrets: orEmpty(slices.Sorted(maps.Keys(w.Secrets))),
	}
	g.Features = orEmpty(w.Features)
	maps.Copy(g.Config, w.Config)
	for _, m := range w.System.Mounts {
		g.Mounts = append(g.Mounts, mountGrant{m.Host, m.Guest, m.Write})
	}
	if w.System.PreciseClock {
		g.Clock = "precise"
	}
	if w.HTTP != nil {
		for _, rule := range w.HTTP.Policy.Allow {
			g.HTTP = append(g.HTTP, rule.String())
		}
		for _, private := range w.HTTP.Policy.AllowPrivate {
			g.Private = append(g.Private, private.String())
		}
	}
	return g
}

func (e workerEnv) printInspection(i *inspection) {
	t := e.newTable()
	t.field("worker", i.Worker)
	t.field("file", i.File)
	t.field("sha256", i.SHA256)
	t.field("size", fmt.Sprintf("%d bytes", i.Size))
	t.field("abi", i.ABI)
	t.field("entries", joinNames(i.Entries, ", ")+" (default "+i.Entry+")")
	t.field("linked", joinNames(i.Linked, ", "))
	if i.ABI != runtime.ABIProcess {
		t.field("memory", memoryText(i.MemoryMin, i.MemoryMax))
		t.field("compiling", "takes about "+size(i.CompileMemory)+" of memory")
	}
	t.field("features", strings.Join(i.Features, ", "))
	t.field("verdict", i.Verdict)
	t.field("isolation", isolationText(i))
	t.flush()

	switch {
	case i.ABI == runtime.ABIProcess:
		_, _ = fmt.Fprintln(e.stdout, "\nIt is a program: it can do what the host's user may, within limits. Besides, by its SDK, what Wasm can.")
	case len(i.Capabilities) == 0:
		_, _ = fmt.Fprintln(e.stdout, "\nIt imports nothing: it can only compute.")
	default:
		_, _ = fmt.Fprintln(e.stdout, "\nIt can, by what it imports:")
		for _, c := range i.Capabilities {
			_, _ = fmt.Fprintf(e.stdout, "  %s\n      %s\n", c.Means, printable(importsText(c.Imports)))
		}
	}
	if i.Worker == "" {
		_, _ = fmt.Fprintln(e.stdout, "\nIt gets, unless a manifest says otherwise:")
	} else {
		_, _ = fmt.Fprintln(e.stdout, "\nIt gets:")
	}
	e.printGrants(&i.Grants)
}

// importsText names the imports of a capability, their module only once.
func importsText(imports []string) string {
	for _, module := range []string{nativeModule, extismModule, wasiModule} {
		if strings.HasPrefix(imports[0], module+".") {
			return module + ": " + strings.ReplaceAll(joinNames(imports, " "), module+".", "")
		}
	}
	return joinNames(imports, " ")
}

func (e workerEnv) printGrants(g *grants) {
	t := e.newTable()
	row := func(name, value string) { t.row("  "+name, cmp.Or(value, "none")) }
	row("memory", "up to "+size(g.Memory))
	row("time", "up to "+g.Timeout.String()+" for an attempt")
	row("fuel", fuelText(g.Fuel))
	row("result", "up to "+size(g.Output))
	row("log", "up to "+size(g.Log))
	row("features", strings.Join(g.Features, ", "))
	row("clock", map[string]string{"coarse": "coarse, in steps of 1 ms", "precise": "precise, as the host's"}[g.Clock])
	row("arguments", strings.Join(quoted(g.Args), " "))
	mounts := make([]string, len(g.Mounts))
	for n, m := range g.Mounts {
		mounts[n] = fmt.Sprintf("%s at %s, %s", m.Folder, m.Path, map[bool]string{false: "to read", true: "to read and change"}[m.Write])
	}
	row("files", strings.Join(mounts, "; "))
	var config []string
	for _, name := range slices.Sorted(maps.Keys(g.Config)) {
		config = append(config, name+"="+strconv.Quote(g.Config[name]))
	}
	row("config", strings.Join(config, " "))
	row("secrets", strings.Join(g.Secrets, ", "))
	row("HTTP", strings.Join(g.HTTP, ", "))
	if len(g.HTTP) > 0 {
		row("addresses", strings.Join(append([]string{"of the internet"}, g.Private...), ", "))
	}
	t.flush()
}

func fuelText(fuel int64) string {
	if fuel == 0 {
		return "as much as the time allows"
	}
	return fmt.Sprintf("up to %d for an attempt", fuel)
}

// isolationText says what holds between jobs, and what that costs if it costs more.
func isolationText(i *inspection) string {
	switch runtime.Isolation(i.Isolation) {
	case runtime.IsolateInstance:
		return "instance: a sandbox keeps everything from job to job, until it breaks"
	case runtime.IsolateFresh:
		return "fresh: each job has a sandbox of its own, initialised anew"
	}
	if i.Replaced != "" {
		return "job: each job has a sandbox of its own, initialised anew, since " + i.Replaced
	}
	return "job: a sandbox is put back to its beginning after each job"
}

func memoryText(low, high uint64) string {
	text := size(int64(low)) + " at the start"
	if high > 0 {
		text += ", at most " + size(int64(high))
	}
	return text
}

// quoted quotes those that would fall apart, or not show.
func quoted(list []string) []string {
	shown := make([]string, len(list))
	for n, s := range list {
		if shown[n] = s; s == "" || strings.ContainsAny(s, " \"\t\n") {
			shown[n] = strconv.Quote(s)
		}
	}
	return shown
}

// orEmpty makes nil an empty list, which is [] in JSON rather than null.
func orEmpty[T any](list []T) []T { return append([]T{}, list...) }
