package wasm

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
	"github.com/jobhost/jobhost/runtime/wasm/snapshot"
)

// part is one module of a plugin. Most plugins have one; Extism plugins may
// have others linked to it.
type part struct {
	name      string // by which others import it; empty for the main one
	rewritten *rewrite.Result
	compiled  wazero.CompiledModule
	once      []string // exports that initialise it
	// cramped means that its memory can't grow beyond what one job may use,
	// because of the maximum that the module declares: memory that one job
	// grows, the next would lack.
	cramped bool
}

// body is a part in an instance: its module with everything it can change.
type body struct {
	part    *part
	module  api.Module
	memory  *snapshot.Memory
	globals []api.MutableGlobal // those of the guest, to be reset
	meter   meter
}

// likeness is the state of a body after its initialisation.
type likeness struct {
	memory  *snapshot.Image
	globals []uint64 // in the order of the rewrite's list
}

// open creates a body: empty, or as a copy of another one. Imports that are not
// in the runtime are resolved by ctx's resolver. No code of the guest runs: the
// rewrite has removed its start function.
func (p *part) open(ctx context.Context, r wazero.Runtime, limit int64, like *likeness) (_ *body, err error) {
	b := &body{part: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close(ctx))
		}
	}()
	var content *snapshot.Image
	if like != nil {
		content = like.memory
	}
	if b.memory, err = snapshot.New(uint64(limit), content); err != nil {
		return nil, err
	}
	if err = b.instantiate(ctx, r); err != nil {
		return nil, err
	}
	b.meter.attach(b.module, p.rewritten)
	b.globals = make([]api.MutableGlobal, len(p.rewritten.Globals))
	for n, g := range p.rewritten.Globals {
		b.globals[n] = b.module.ExportedGlobal(g.Export).(api.MutableGlobal)
		if like != nil {
			b.globals[n].Set(like.globals[n])
		}
	}
	return b, nil
}

// moduleConfig has no start functions, which bodies call themselves. Its source
// of randomness is never used; without one wazero seeds a new one each time.
var moduleConfig = wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)

// instantiate recovers from wazero's panics on some modules.
func (b *body) instantiate(ctx context.Context, r wazero.Runtime) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("its tables don't fit")
		}
	}()
	ctx = experimental.WithMemoryAllocator(ctx, b.memory)
	b.module, err = r.InstantiateModule(ctx, b.part.compiled, moduleConfig)
	return err
}

// start writes the data segments, which the rewrite removed from the module,
// and calls the start function and the exports that initialise it. That the
// data fits was checked when the module was loaded.
func (b *body) start(i *Instance) error {
	memory := b.memory.Bytes()
	for _, d := range b.part.rewritten.Data {
		copy(memory[d.Offset:], d.Bytes)
	}
	names := b.part.once
	if s := b.part.rewritten.Start; s != "" {
		names = append([]string{s}, names...)
	}
	for _, name := range names {
		initialize := i.optional(b.module, name)
		definition := initialize.f.Definition()
		if err := initialize.call(make([]uint64, len(definition.ParamTypes())+len(definition.ResultTypes()))); err != nil {
			return err
		}
	}
	return nil
}

// look returns the current state of the body.
func (b *body) look() (*likeness, error) {
	memory, err := b.memory.Image()
	if err != nil {
		return nil, err
	}
	l := &likeness{memory: memory, globals: make([]uint64, len(b.globals))}
	for n, g := range b.globals {
		l.globals[n] = g.Get()
	}
	return l, nil
}

// outgrown reports that the memory has grown too far for another job.
func (b *body) outgrown() bool {
	return b.memory.Outgrown() || b.part.cramped && b.memory.Grown()
}

// restore resets the body to a state.
func (b *body) restore(l *likeness) error {
	for n, g := range b.globals {
		if g.Get() != l.globals[n] {
			g.Set(l.globals[n])
		}
	}
	if _, err := b.memory.Reset(); err != nil {
		return err
	}
	// If that fails, the size is the only thing that the next job sees.
	b.memory.Shrink(b.module.Memory())
	return nil
}

func (b *body) close(ctx context.Context) error {
	var errs []error
	if b.module != nil {
		errs = append(errs, b.module.Close(ctx))
	}
	if b.memory != nil {
		errs = append(errs, b.memory.Close())
	}
	return errors.Join(errs...)
}
