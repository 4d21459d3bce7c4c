package rig

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// Bounded compares modules that may never end: first they run rewritten, with a
// budget of fuel; those that end within it are then interpreted. It is not safe
// for concurrent use.
type Bounded struct{ interpreted, rewritten wazero.Runtime }

// NewBounded returns a Bounded, which its caller must close.
func NewBounded(ctx context.Context) *Bounded {
	config := wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2).WithCloseOnContextDone(true)
	return &Bounded{interpreted: wazero.NewRuntimeWithConfig(ctx, config), rewritten: NewRuntime(ctx, Rewritten)}
}

// Close closes the runtimes.
func (b *Bounded) Close(ctx context.Context) error {
	return errors.Join(b.interpreted.Close(ctx), b.rewritten.Close(ctx))
}

const (
	// enough is the fuel that a call may use.
	enough = 3000
	// patience is how long the interpreter may take for a module that ended within the budget.
	patience = 30 * time.Second
)

// errEndless is returned for modules that exceed the budget.
var errEndless = errors.New("it doesn't end")

// Run compares the rewritten form of a module with its canonical encoding on the
// interpreter, and reports the first difference. The module must be one that
// [Check] has returned. ended is false when the module used up its fuel.
func (b *Bounded) Run(ctx context.Context, m *module.Module, seed uint64) (diff string, ended bool) {
	canonical, err := m.Encode(nil)
	if err != nil {
		return err.Error(), true
	}
	t := &trial{m: m, Rand: rand.New(rand.NewPCG(seed, 2))}
	defer func() {
		if err := t.close(ctx); err != nil && diff == "" {
			diff = err.Error()
		}
	}()
	after, errAfter := Instantiate(ctx, b.rewritten, Rewritten, m.Bytes, "")
	before, errBefore := Instantiate(ctx, b.interpreted, Interpreted, canonical, "")
	t.instances = [forms]api.Module{Interpreted: before, Rewritten: after}
	if (errBefore == nil) != (errAfter == nil) {
		return fmt.Sprintf("instantiated with error %v, interpreted %v", errAfter, errBefore), true
	}
	if errBefore != nil {
		return "", true
	}
	for _, e := range m.Exports {
		if e.Kind != module.KindFunction {
			continue
		}
		diff, err := t.bounded(ctx, before, after, e)
		if diff != "" || err != nil {
			return diff, err == nil
		}
	}
	return "", true
}

// bounded calls one function in both instances.
func (t *trial) bounded(ctx context.Context, before, after api.Module, e module.Export) (string, error) {
	kind, _ := t.m.FunctionType(e.Index)
	args := t.args(kind.Params)
	allot(after)
	got := t.run(ctx, after, e.Name, args, kind.Results)
	if used(after) > enough {
		return "", errEndless
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	want := t.run(patient, before, e.Name, args, kind.Results)
	if diff := got.diff(&want); diff != "" {
		return fmt.Sprintf("%s%#x: %s", e.Name, args, diff), nil
	}
	return "", nil
}

// allot gives a rewritten instance its fuel.
func allot(instance api.Module) {
	r := rewrite.Result{Interval: rewrite.DefaultInterval}
	tick, fuel, most := r.Allot(enough)
	set := func(name string, v uint64) { instance.ExportedGlobal(name).(api.MutableGlobal).Set(v) }
	set(rewrite.Tick, api.EncodeI32(tick))
	set(rewrite.Fuel, api.EncodeI64(fuel))
	set(rewrite.Budget, api.EncodeI64(most))
}

func used(instance api.Module) int64 {
	tick := api.DecodeI32(instance.ExportedGlobal(rewrite.Tick).Get())
	return rewrite.Used(int64(instance.ExportedGlobal(rewrite.Fuel).Get()), tick)
}
