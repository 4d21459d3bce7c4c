package rig_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasm"
	"github.com/jobhost/jobhost/runtime/wasm/preflight"
)

const (
	runFor    = 50 * time.Millisecond // the deadline of a mutant's jobs
	startFor  = 200 * time.Millisecond
	mutantRAM = 16 << 20
	loadBytes = 3 << 20 // of modules whose load is timed
	mostRuns  = 8       // entries of a mutant
)

// containment runs mutants in an engine, beside a worker that is none.
type containment struct {
	originals *originals
	engine    runtime.Engine
	canary    *runtime.Sandbox
	beat      *beat
	broken    error // why it can't
}

func newMutants(ctx context.Context) worker {
	w := &containment{beat: startBeat()}
	w.broken = w.open(ctx)
	return w
}

func (w *containment) open(ctx context.Context) (err error) {
	if w.originals, err = newOriginals(); err != nil {
		return err
	}
	if w.engine, err = wasm.New(wasm.Config{}); err != nil {
		return err
	}
	p, err := w.engine.Load(ctx, runtime.Source{Worker: "canary", Bytes: guests.SHA256})
	if err != nil {
		return err
	}
	w.canary = runtime.NewSandbox(p, nil)
	return nil
}

func (w *containment) close(ctx context.Context) error {
	w.beat.stop()
	if w.broken != nil {
		return w.broken
	}
	return errors.Join(w.canary.Close(ctx), w.engine.Close(ctx))
}

func (w *containment) try(ctx context.Context, n int) report {
	if w.broken != nil {
		return report{Wrong: w.broken.Error()}
	}
	b, err := w.originals.mutant(n)
	if err != nil {
		return report{Wrong: err.Error()}
	}
	w.beat.take()
	m := &mutant{report: report{Count: map[string]int{}}}
	if err := m.contain(ctx, w, b); err != nil {
		m.Wrong = err.Error()
	}
	if m.Load > maxLoad {
		if m.Usual, err = w.usual(ctx, n); err != nil {
			m.Wrong += err.Error()
		}
	}
	sung := w.canary.Run(ctx, runtimetest.Attempt("", "abc"))
	const song = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if sung.Kind != jobhost.OutcomeSucceeded || string(sung.Output) != song {
		m.Wrong += fmt.Sprintf("the next job of another worker: %s, %+v", sung.Output, sung.Failure)
	}
	m.Late = w.beat.take()
	return m.report
}

// usual returns how long it takes to load what a mutant was made of.
func (w *containment) usual(ctx context.Context, n int) (time.Duration, error) {
	b, err := w.originals.original(randomOf(n), n)
	if err != nil {
		return 0, err
	}
	w.beat.idle.Store(true)
	defer w.beat.idle.Store(false)
	began := time.Now()
	p, err := w.engine.Load(ctx, runtime.Source{Worker: "original", Bytes: b, Features: runtime.Features(), Limits: runtime.Limits{MemoryBytes: mutantRAM}})
	took := time.Since(began)
	if jobhost.CodeOf(err) == jobhost.CodeInvalid {
		return 0, nil // a mutant that is taken where its original isn't has no more than a second
	}
	if err != nil {
		return 0, fmt.Errorf("load the original: %w", err)
	}
	return took, p.Close(ctx)
}

// mutant is one that is tried.
type mutant struct {
	report
	plugin runtime.Plugin
	begun  map[string]jobhost.Outcome // what a new sandbox shows, by entry
}

// contain loads a mutant and runs it. An error is a fault of ours.
func (t *mutant) contain(ctx context.Context, w *containment, b []byte) error {
	src := runtime.Source{
		Worker: "mutant", Bytes: b, Features: runtime.Features(),
		Limits: runtime.Limits{MemoryBytes: mutantRAM, StartTime: startFor, OutputBytes: mutantRAM},
	}
	if m, err := module.Read(b); err == nil && !strings.Contains(foreign(m), "extism") {
		if harnessed, err := harness(m); err == nil {
			src.Bytes, src.ABI, src.Entry = harnessed, runtime.ABIJobhost, lookAtMemory
		}
	}
	w.beat.idle.Store(true) // a load is measured, and has no use for a hundred collections
	began := time.Now()
	p, err := w.engine.Load(ctx, src)
	w.beat.idle.Store(false)
	if len(b) <= loadBytes {
		t.Load = time.Since(began)
	}
	if jobhost.CodeOf(err) == jobhost.CodeInvalid {
		t.Count[refusedBy(src.Bytes)]++
		return nil
	}
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	t.plugin = p
	t.Count["loaded"]++
	return errors.Join(t.runAll(ctx), p.Close(ctx))
}

// refusedBy says what a module was refused by: before the compiler, or after that.
func refusedBy(wasm []byte) string {
	if _, err := preflight.Check(wasm, preflight.Limits{MemoryPages: mutantRAM >> 16, TableEntries: 100_000, Vectors: true}); err != nil {
		return "refused"
	}
	return "invalid"
}

// foreign are the modules that a module imports from.
func foreign(m *module.Module) string {
	var names []string
	for _, i := range m.Imports {
		names = append(names, i.Module)
	}
	return strings.Join(names, " ")
}

// runAll runs each entry, and looks at the sandbox afterwards.
func (t *mutant) runAll(ctx context.Context) error {
	i, err := t.plugin.Instantiate(ctx)
	if err != nil {
		t.Count["not started"]++
		return t.unstarted(err)
	}
	defer func() { _ = i.Close(ctx) }()
	t.Count["ran"]++
	entries := t.plugin.Info().Entries
	t.begun = map[string]jobhost.Outcome{}
	looks := slices.DeleteFunc(slices.Clone(entries), func(e string) bool { return e != lookAtMemory && e != lookAtGlobals })
	for _, look := range looks {
		if i, err = t.run(ctx, i, look, func(o jobhost.Outcome) error { t.begun[look] = o; return nil }); err != nil {
			return err
		}
	}
	entries = slices.DeleteFunc(entries, func(e string) bool { return slices.Contains(looks, e) })
	for _, entry := range entries[:min(len(entries), mostRuns)] {
		if i, err = t.run(ctx, i, entry, nil); err != nil {
			return err
		}
		for _, look := range looks {
			if i, err = t.run(ctx, i, look, func(o jobhost.Outcome) error { return t.same(entry, look, o) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// unstarted returns an error unless it is the module's fault that it can't start.
func (t *mutant) unstarted(err error) error {
	if code := jobhost.CodeOf(err); code != jobhost.CodeInvalid && code != jobhost.CodeUnavailable {
		return fmt.Errorf("start: %w", err)
	}
	return nil
}

// run runs an entry, and returns the instance for the next job.
func (t *mutant) run(ctx context.Context, i runtime.Instance, entry string, check func(jobhost.Outcome) error) (runtime.Instance, error) {
	at := runtimetest.Attempt(entry, "hello")
	at.Limits.OutputBytes = mutantRAM
	at.Deadline = time.Now().Add(runFor)
	got := i.Run(ctx, at)
	t.Count["jobs"]++
	if f := got.Outcome.Failure; f != nil {
		t.Count["job "+f.Code]++
		if f.Code == jobhost.FailInternal {
			return i, fmt.Errorf("%s: %+v", entry, f)
		}
	}
	if check != nil {
		if err := check(got.Outcome); err != nil {
			return i, err
		}
	}
	if got.Replace == "" {
		return i, nil
	}
	if got.Replace == runtime.ReplacedInternal {
		return i, fmt.Errorf("%s: the sandbox can't be put back", entry)
	}
	t.Count["replaced"]++
	next, err := t.plugin.Instantiate(ctx)
	if err != nil {
		return i, fmt.Errorf("a further sandbox: %w", err)
	}
	return next, i.Close(ctx)
}

// same compares what a sandbox shows after a job with what it showed at first.
func (t *mutant) same(entry, look string, got jobhost.Outcome) error {
	want := t.begun[look]
	if timedOut(want) || timedOut(got) || t.plugin.Info().Replaced != "" && len(t.plugin.Info().Imports) > 0 {
		return nil // nothing was seen, or a new one is initialised with other random numbers
	}
	t.Count["looks"]++
	if got.Kind == want.Kind && bytes.Equal(got.Output, want.Output) {
		return nil
	}
	at := 0
	for at < min(len(got.Output), len(want.Output)) && got.Output[at] == want.Output[at] {
		at++
	}
	return fmt.Errorf("after %s, %s shows %d bytes instead of %d, %v instead of %v, from byte %#x on others: %x instead of %x",
		entry, look, len(got.Output), len(want.Output), got.Kind, want.Kind, at,
		got.Output[at:min(at+16, len(got.Output))], want.Output[at:min(at+16, len(want.Output))])
}

func timedOut(o jobhost.Outcome) bool {
	return o.Failure != nil && o.Failure.Code == jobhost.FailTimeout
}
