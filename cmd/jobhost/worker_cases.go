package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/workertest"
	"github.com/jobhost/jobhost/internal/text"
)

// casesFlags are the flags of worker test.
type casesFlags struct {
	worker, plugin, abi string
	features            []string
	limits              limitFlags
	only                string
	update              bool
	parallel            int
}

func newWorkerTestCommand(e workerEnv) *cobra.Command {
	var f casesFlags
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run the test cases of a worker, without a server",
		Long: `Run the test cases of a worker, without a server.

DIR, by default "cases", has a folder for each case: with input or input.*, with
output or output.*, which is what must come of it, and, where that is not all,
with case.toml: what the worker finds (keys, responses, states, secrets), and
what it must do (fail, log, submit, change). NAME.in and NAME.out are a case as
well, with NAME.toml. docs/testing-workers.md has all of it.

Each case runs in a sandbox of its own. Nothing is sent anywhere: a request that
the case doesn't answer fails it. Timers and delays take no time.

The worker is the one that cases.toml in DIR or a flag names; else the only one
of the manifest. It has what the manifest grants it, but no real secrets. A
plugin of its own may do what its cases answer and expect. The exit code is 1
when a case failed.`,
		Example: `  jobhost worker test
  jobhost worker test plugins/examples/wordcount/cases
  jobhost worker test cases --plugin hello.wasm --run '^empty' --update`,
		Args: between(0, "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "cases"
			if len(args) > 0 {
				dir = args[0]
			}
			return e.test(cmd.Context(), &f, dir)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.worker, "worker", "", "the worker of the manifest, by its `NAME`")
	flags.StringVar(&f.plugin, "plugin", "", "a module, or the JSON of an Extism plugin, instead of a worker, as a `FILE`")
	flags.StringVar(&f.abi, "abi", "", "how to talk to --plugin, as a `NAME`: auto, jobhost, wasi, extism or process")
	featureFlag(cmd, &f.features)
	f.limits = newLimitFlags(cmd, "memory", "compile_memory")
	flags.StringVar(&f.only, "run", "", "only cases whose name matches the `REGEXP`")
	flags.BoolVar(&f.update, "update", false, "write outputs that differ, or are not there, as they came")
	flags.IntVarP(&f.parallel, "jobs", "j", goruntime.GOMAXPROCS(0), "`NUMBER` of cases to run at once")
	cmd.MarkFlagsMutuallyExclusive("worker", "plugin")
	return cmd
}

func (e workerEnv) test(ctx context.Context, f *casesFlags, dir string) (err error) {
	if f.parallel < 1 || f.parallel > 1024 {
		return usagef("--jobs %d is not between 1 and 1024", f.parallel)
	}
	only, err := regexp.Compile(f.only)
	if err != nil {
		return usagef("--run: %v", err)
	}
	suite, err := workertest.Open(e.path(dir))
	if err != nil {
		return err
	}
	cases := slices.DeleteFunc(slices.Clone(suite.Cases), func(c *workertest.Case) bool { return !only.MatchString(c.Name) })
	if len(cases) == 0 {
		return usagef("none of %s in %s matches %q", plural(len(suite.Cases), "case"), dir, f.only)
	}
	r := &workertest.Runner{Update: f.update, Parallel: f.parallel}
	if r.Worker, r.Free, err = e.testedWorker(f, suite); err != nil {
		return err
	}
	if r.Engine, err = openUserEngine(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Engine.Close(context.WithoutCancel(ctx))) }()
	ctx, stop := interruptible(ctx)
	defer stop()
	p := &casePrinter{env: e.env, began: e.now()}
	err = r.Run(ctx, suite, cases, p.print)
	if ctx.Err() != nil {
		e.note("interrupted: %s; the others have no result", p.counts())
		return errReported
	}
	if err != nil {
		return orByFlag(err, r.Free)
	}
	e.note("%s, %v", p.counts(), e.now().Sub(p.began).Round(time.Millisecond))
	if p.failed > 0 {
		return errReported
	}
	return nil
}

// testedWorker finds what the cases are for; free = it is no worker of a manifest.
func (e workerEnv) testedWorker(f *casesFlags, suite *workertest.Suite) (w host.Worker, free bool, err error) {
	path, name := suite.Plugin, suite.Plugin
	switch {
	case f.plugin != "":
		path, name = e.path(f.plugin), f.plugin
	case f.worker != "":
		path = ""
	}
	if path == "" {
		switch {
		case f.abi != "":
			return w, false, usagef("--abi is for --plugin; the manifest says that of its workers")
		case len(f.features) > 0:
			return w, false, usagef("--feature is for --plugin; the manifest says that of its workers")
		}
		for key := range f.limits {
			if f.limits.given(key) {
				return w, false, usagef("--%s is for --plugin; the manifest says that of its workers", limitFlag(key))
			}
		}
		w, err = e.grantedWorker(cmp.Or(f.worker, suite.Worker), suite.Manifest)
		return w, false, err
	}
	w, err = fileWorker(path, name)
	useABI(&w, cmp.Or(f.abi, suite.ABI))
	w.Features = suite.Features
	return w, true, errors.Join(err, allowFeatures(&w, f.features), f.limits.apply(&w))
}

// grantedWorker finds a worker of the manifest, or its only one.
func (e workerEnv) grantedWorker(name, path string) (host.Worker, error) {
	if path == "" || e.namedManifest() != "" {
		path = e.manifestPath()
	}
	m, err := manifest.LoadForTests(path)
	if e, ok := errors.AsType[*jobhost.Error](err); ok && e.Code == jobhost.CodeNotFound {
		return host.Worker{}, &jobhost.Error{
			Code: e.Code, Message: "find the worker to test: " + e.Message, Hint: "name a manifest by -f, or a module by --plugin",
		}
	}
	if err != nil {
		return host.Worker{}, fmt.Errorf("find the worker to test: %w", err)
	}
	if name == "" && len(m.Workers) == 1 {
		name = m.Workers[0].Name
	}
	names := make([]string, len(m.Workers))
	for i := range m.Workers {
		if names[i] = m.Workers[i].Name; names[i] == name {
			return host.WorkerFromManifest(m, &m.Workers[i])
		}
	}
	if name == "" {
		return host.Worker{}, usagef("which worker are the cases for? Name it by --worker, or as worker in cases.toml; %s has %s",
			path, strings.Join(names, ", "))
	}
	return host.Worker{}, usagef("%s has no worker %q; it has %s", path, name, strings.Join(names, ", "))
}

// casePrinter prints what became of cases.
type casePrinter struct {
	env                         *env
	began                       time.Time
	ok, failed, skipped, update int
}

// caseResult is what -o json says of a case.
type caseResult struct {
	Case        string           `json:"case"`
	Result      string           `json:"result"` // ok, failed or skipped
	Skipped     string           `json:"skipped,omitempty"`
	TookMS      float64          `json:"took_ms"`
	Differences []caseDifference `json:"differences,omitempty"`
	Notes       []string         `json:"notes,omitempty"`
	Log         string           `json:"log,omitempty"` // of a case that failed
	Updated     string           `json:"updated,omitempty"`
}

type caseDifference struct {
	What string `json:"what"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Diff string `json:"diff,omitempty"`
}

func (p *casePrinter) print(r *workertest.Result) {
	word := "ok"
	switch {
	case r.Case.Skip != "":
		word = "skipped"
		p.skipped++
	case !r.OK():
		word = "failed"
		p.failed++
	default:
		p.ok++
	}
	if r.Updated != "" {
		p.update++
	}
	if p.env.wantsJSON() {
		p.printJSON(word, r)
		return
	}
	columns := fmt.Sprintf("%-7s %s", word, printable(r.Case.Name))
	switch {
	case r.Case.Skip != "":
		columns += "  " + printable(r.Case.Skip)
	case r.Updated != "":
		columns += fmt.Sprintf("  %s, wrote %s", took(r.Took), printable(r.Updated))
	default:
		columns += "  " + took(r.Took)
	}
	_, _ = fmt.Fprintln(p.env.stdout, columns)
	if r.OK() {
		return
	}
	for i := range r.Differences {
		p.printDifference(&r.Differences[i])
	}
	for _, note := range r.Notes {
		p.lines("    ", "note: "+strings.ReplaceAll(note, "\n", "\n      "))
	}
	if r.Log != "" {
		p.lines("    ", "log:")
		p.lines("      ", r.Log)
	}
}

func (p *casePrinter) printDifference(d *workertest.Difference) {
	if d.Diff != "" {
		p.lines("    ", d.What+": - is what is wanted, + what came")
		p.lines("      ", d.Diff)
		return
	}
	p.lines("    ", d.What)
	const hang = "\n     "
	p.lines("      ", "want "+strings.ReplaceAll(d.Want, "\n", hang))
	p.lines("      ", "got  "+strings.ReplaceAll(d.Got, "\n", hang))
}

// lines prints a text of which no line steers a terminal.
func (p *casePrinter) lines(indent, lines string) {
	for line := range strings.Lines(lines) {
		_, _ = fmt.Fprintf(p.env.stdout, "%s%s\n", indent, text.Escape(strings.TrimSuffix(line, "\n"), "\t"))
	}
}

func (p *casePrinter) printJSON(word string, r *workertest.Result) {
	result := caseResult{
		Case: r.Case.Name, Result: word, Skipped: r.Case.Skip, TookMS: float64(r.Took.Microseconds()) / 1000, Updated: r.Updated,
	}
	if !r.OK() {
		result.Log, result.Notes = r.Log, r.Notes
	}
	for _, d := range r.Differences {
		result.Differences = append(result.Differences, caseDifference(d))
	}
	_ = p.env.json(&result) // the stream remembers the error
}

func (p *casePrinter) counts() string {
	text := fmt.Sprintf("%d ok, %d failed", p.ok, p.failed)
	if p.skipped > 0 {
		text += fmt.Sprintf(", %d skipped", p.skipped)
	}
	if p.update > 0 {
		text += ", wrote " + plural(p.update, "output")
	}
	return text
}
