package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/module"
)

// forms is the number of forms.
const forms = 3

// Bench has a runtime for each form. It is not safe for concurrent use.
type Bench struct{ runtimes [forms]wazero.Runtime }

// NewBench returns a bench, which its caller must close.
func NewBench(ctx context.Context) *Bench {
	b := &Bench{}
	for f := range Form(forms) {
		b.runtimes[f] = NewRuntime(ctx, f)
	}
	return b
}

// Close closes the runtimes.
func (b *Bench) Close(ctx context.Context) error {
	var errs []error
	for _, r := range b.runtimes {
		if r != nil {
			errs = append(errs, r.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

// Outcome is the result of running a module.
type Outcome struct {
	Calls, Traps int
	// Plain and Rewritten say where the compiled and the rewritten module first
	// differ from the interpreted one; "" = nowhere.
	Plain, Rewritten string
}

// Run calls each exported function of a module in all forms, one call after the
// other, and compares results, traps, memory and globals after each. The
// arguments depend on the seed. The error is about the module: it is invalid,
// or none of the forms could be instantiated.
func (b *Bench) Run(ctx context.Context, wasm []byte, seed uint64) (o Outcome, err error) {
	m, err := Check(wasm)
	if err != nil {
		return o, err
	}
	t := &trial{m: m, Rand: rand.New(rand.NewPCG(seed, 2))}
	defer func() { err = errors.Join(err, t.close(ctx)) }()
	var failed [forms]error
	for f := range Form(forms) {
		t.instances[f], failed[f] = Instantiate(ctx, b.runtimes[f], f, wasm, "")
	}
	for f := Compiled; f <= Rewritten; f++ {
		if (failed[f] == nil) != (failed[Interpreted] == nil) {
			t.differ(&o, f, "instantiated with error %v instead of %v", failed[f], failed[Interpreted])
		}
	}
	if failed[Interpreted] != nil {
		return o, failed[Interpreted]
	}
	for round := range 2 {
		for _, e := range m.Exports {
			if e.Kind == module.KindFunction && !strings.HasPrefix(e.Name, "jobhost:") {
				t.call(ctx, &o, e, round)
			}
		}
	}
	return o, nil
}

// trial is one run of a module in all forms. Forms that differ are dropped.
type trial struct {
	*rand.Rand
	m         *module.Module
	instances [forms]api.Module
}

func (t *trial) close(ctx context.Context) error {
	var errs []error
	for _, i := range t.instances {
		if i != nil {
			errs = append(errs, i.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

func (t *trial) differ(o *Outcome, f Form, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if f == Compiled && o.Plain == "" {
		o.Plain = what
	} else if f == Rewritten && o.Rewritten == "" {
		o.Rewritten = what
	}
}

// call calls a function in all forms that have been right so far.
func (t *trial) call(ctx context.Context, o *Outcome, e module.Export, round int) {
	kind, _ := t.m.FunctionType(e.Index)
	args := t.args(kind.Params)
	what := fmt.Sprintf("round %d, %s%#x", round, e.Name, args)
	var want state
	o.Calls++
	for f := range Form(forms) {
		wrong := f == Compiled && o.Plain != "" || f == Rewritten && o.Rewritten != ""
		if t.instances[f] == nil || wrong {
			continue
		}
		got := t.run(ctx, t.instances[f], e.Name, args, kind.Results)
		if f == Interpreted {
			want = got
			if got.trap != "" {
				o.Traps++
			}
			continue
		}
		if diff := got.diff(&want); diff != "" {
			t.differ(o, f, "%s: %s", what, diff)
		}
	}
}

// ownFuel is the fuel that programs get for each call.
const ownFuel = 150

// state is everything observable about a module after a call.
type state struct {
	trap    string
	results []uint64
	memory  []byte // a view
	globals []string
}

func (t *trial) run(ctx context.Context, instance api.Module, name string, args []uint64, results []byte) (s state) {
	if fuel, ok := instance.ExportedGlobal(Fuel).(api.MutableGlobal); ok {
		fuel.Set(ownFuel)
	}
	got, err := instance.ExportedFunction(name).Call(ctx, args...)
	s.trap = Trap(err)
	if err == nil {
		s.results = canonicals(results, got)
	}
	if memory := instance.Memory(); len(t.m.Memories) > 0 { // the rewrite adds one if there is none
		s.memory, _ = memory.Read(0, memory.Size())
	}
	for _, e := range t.m.Exports {
		if e.Kind == module.KindGlobal {
			s.globals = append(s.globals, globalText(instance.ExportedGlobal(e.Name)))
		}
	}
	return s
}

// globalText formats the value of a global, for vectors the lower half only:
// wazero returns no more.
func globalText(g api.Global) string {
	return fmt.Sprintf("%#x", canonical(g.Type(), g.Get()))
}

// canonicals canonicalizes NaNs in results.
func canonicals(types []byte, words []uint64) []uint64 {
	out := words[:0:0]
	for _, t := range types {
		if t == module.V128 {
			out = append(out, words[0], words[1])
			words = words[2:]
			continue
		}
		out = append(out, canonical(t, words[0]))
		words = words[1:]
	}
	return out
}

// diff describes the difference; "" = none.
func (s *state) diff(want *state) string {
	switch {
	case s.trap != want.trap:
		return fmt.Sprintf("ended with %q instead of %q", s.trap, want.trap)
	case fmt.Sprint(s.results) != fmt.Sprint(want.results):
		return fmt.Sprintf("returned %#x instead of %#x", s.results, want.results)
	case len(s.memory) != len(want.memory):
		return fmt.Sprintf("memory has %d bytes instead of %d", len(s.memory), len(want.memory))
	case !bytes.Equal(s.memory, want.memory):
		for i := range s.memory {
			if s.memory[i] != want.memory[i] {
				return fmt.Sprintf("byte %d of memory is %#x instead of %#x", i, s.memory[i], want.memory[i])
			}
		}
	}
	for i := range s.globals {
		if s.globals[i] != want.globals[i] {
			return fmt.Sprintf("exported global %d is %s instead of %s", i, s.globals[i], want.globals[i])
		}
	}
	return ""
}

// args returns arguments, half of them edge cases.
func (t *trial) args(types []byte) []uint64 {
	g := generator{Rand: t.Rand}
	var args []uint64
	for _, kind := range types {
		switch kind {
		case module.I32:
			args = append(args, api.EncodeI32(g.int32()))
		case module.I64:
			args = append(args, g.int64())
		case module.F32:
			args = append(args, uint64(g.float32()))
		case module.F64:
			args = append(args, g.float64())
		case module.V128:
			args = append(args, g.Uint64(), g.Uint64())
		case module.ExternRef:
			args = append(args, uint64(g.IntN(3)))
		default:
			args = append(args, 0)
		}
	}
	return args
}
