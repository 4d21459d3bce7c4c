// Package guesttest runs guests of the native ABI, and commands, in tests,
// against a host that is nothing but memory. It tells from the guest's side
// whether the ABI is kept, without a line in common with the real host.
package guesttest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/jobhost/jobhost/internal/testing/goguest"
)

// Build returns the module of the Go worker in a folder. With -short the test is skipped.
func Build(t testing.TB, folder string) []byte {
	t.Helper()
	return build(t, folder, goguest.Worker)
}

// BuildCommand is Build for a program with a main function.
func BuildCommand(t testing.TB, folder string) []byte {
	t.Helper()
	return build(t, folder, goguest.Command)
}

func build(t testing.TB, folder string, mode goguest.Mode) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("building a Go guest takes seconds")
	}
	module, err := goguest.Build(folder, mode)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// Read reads a module that is there.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	module, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// Guest is one instance. One goroutine uses it at a time.
type Guest struct {
	// Attempt is what the guest is given and what it did.
	Attempt *Attempt
	// Grew counts the calls of jh_buf.
	Grew int

	t         testing.TB
	runtime   wazero.Runtime
	compiled  wazero.CompiledModule
	config    wazero.ModuleConfig
	module    api.Module
	stderr    *os.File
	pristine  []byte // memory before the first job
	ptr, room uint32 // of the mailbox
}

// Start initialises a module, in wazero's interpreter: to compile one that is
// written in Go takes half a minute under the race detector, which is more than
// its tests have to run.
func Start(t testing.TB, module []byte) *Guest {
	t.Helper()
	g := &Guest{t: t, Attempt: &Attempt{}}
	var err error
	if g.stderr, err = os.Create(filepath.Join(t.TempDir(), "stderr")); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	g.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(64<<20>>16))
	t.Cleanup(func() {
		// The context of the test is over by now, but closing doesn't wait.
		_ = g.runtime.Close(ctx)
		_ = g.stderr.Close()
	})
	wasi_snapshot_preview1.MustInstantiate(ctx, g.runtime)
	if err := g.defineHost(ctx, g.runtime); err != nil {
		t.Fatal(err)
	}
	if g.compiled, err = g.runtime.CompileModule(ctx, module); err != nil {
		t.Fatal(err)
	}
	g.config = wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").
		WithStderr(g.stderr).WithRandSource(counter{new(byte)})
	g.setClocks()
	g.instantiate()
	m := g.module.Memory()
	view, _ := m.Read(0, m.Size())
	g.pristine = slices.Clone(view)
	return g
}

func (g *Guest) instantiate() {
	g.t.Helper()
	var err error
	if g.module, err = g.runtime.InstantiateModule(g.t.Context(), g.compiled, g.config); err != nil {
		g.t.Fatal(err)
	}
	g.ptr, g.room = 0, 0
}

// Reset puts the guest back to where it was after it was initialised, as a host
// does that gives every job a sandbox like new, and wakes it. The globals of a
// module can't be set from here, so that another instance, which has
// initialised its own, gets the memory of the first.
func (g *Guest) Reset() {
	g.t.Helper()
	if err := g.module.Close(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
	g.instantiate()
	if !g.module.Memory().Write(0, g.pristine) {
		g.t.Fatal("the memory is smaller than that of another instance")
	}
	if _, err := g.module.ExportedFunction("jh_wake").Call(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
}

// Call hands over the input of g.Attempt and calls an entry. The error is a trap.
func (g *Guest) Call(entry string) error {
	at := g.Attempt
	if n := uint32(len(at.Input)); n > g.room {
		box, err := g.module.ExportedFunction("jh_buf").Call(g.t.Context(), uint64(n))
		if err != nil {
			return err
		}
		g.ptr, g.room = uint32(box[0]), n
		g.Grew++
	}
	if !g.module.Memory().Write(g.ptr, at.Input) {
		g.t.Fatalf("the mailbox at %d is outside of the memory", g.ptr)
	}
	result, err := g.module.ExportedFunction(entry).Call(g.t.Context(), uint64(len(at.Input)))
	if err != nil {
		return err
	}
	view, ok := g.module.Memory().Read(uint32(result[0]>>32), uint32(result[0]))
	if !ok {
		g.t.Fatalf("%s returned %#x, which is outside of the memory", entry, result[0])
	}
	at.Output = append(at.Output, view...)
	return nil
}

// Run runs one attempt with jh_run, which must not trap.
func (g *Guest) Run(input []byte) *Attempt {
	g.t.Helper()
	g.Attempt = &Attempt{Input: input}
	if err := g.Call("jh_run"); err != nil {
		g.t.Fatalf("%v\n%s", err, g.Stderr())
	}
	return g.Attempt
}

// Stderr returns what the guest has written to standard error.
func (g *Guest) Stderr() string {
	text, err := os.ReadFile(g.stderr.Name())
	if err != nil {
		g.t.Fatal(err)
	}
	return string(text)
}

// MemorySize returns the size of the guest's memory in bytes.
func (g *Guest) MemorySize() uint32 { return g.module.Memory().Size() }

// counter is a source of bytes that never repeats a seed, and fails no test at random.
type counter struct{ next *byte }

func (c counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = *c.next
		*c.next++
	}
	return len(p), nil
}
