package wasm

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/jobhost/jobhost/runtime/wasm/preflight"
)

// farBeyond is how many times its compile_memory a module may need and still be rewritten, just
// to report how much that is. Modules that need more are rejected earlier.
const farBeyond = 4

// translate compiles the modules to machine code.
func (p *Plugin) translate(ctx context.Context, modules []checked) error {
	var sum int64
	for i := range modules {
		if err := p.estimate(&modules[i]); err != nil {
			return ofLinked(modules[i].name, err)
		}
		sum += modules[i].estimate.Bytes
	}
	leave, err := p.engine.room.enter(ctx, sum)
	if err != nil {
		return err
	}
	defer leave()
	for i := range modules {
		if err := p.add(&modules[i]); err != nil {
			return ofLinked(modules[i].name, err)
		}
	}
	return p.compile(ctx)
}

// estimate checks the code of a module.
func (p *Plugin) estimate(c *checked) (err error) {
	if c.estimate, err = preflight.Code(c.module, p.bounds()); err != nil {
		return err
	}
	p.needs(c.module)
	bounds, code := p.bounds(), c.module.CodeBytes()
	bounds.CompileBytes *= farBeyond
	if c.estimate.Within(bounds, code) != nil {
		return c.estimate.Within(p.bounds(), code)
	}
	return nil
}

// weigh compares the cost of compiling a rewritten module with its limits.
func (p *Plugin) weigh(c *checked, rewritten []byte) error {
	after, err := preflight.Rewritten(rewritten)
	if err != nil {
		return err
	}
	code := c.module.CodeBytes()
	worse := c.estimate.Worse(after)
	p.info.CompileMemory += worse.Bytes
	p.info.CompileNeed = max(p.info.CompileNeed, worse.Need(code))
	return worse.Within(p.bounds(), code)
}

// roomBytes is the estimated memory that plugins being loaded at one time may
// use for compiling, unless one alone takes more.
const roomBytes = 1 << 30

// room admits what fits at one time. Large plugins are compiled one after the
// other.
type room struct{ places *semaphore.Weighted }

func newRoom() room { return room{semaphore.NewWeighted(roomBytes)} }

// enter waits until that much room is free, or all of it.
func (r room) enter(ctx context.Context, bytes int64) (leave func(), err error) {
	n := min(max(bytes, 0), roomBytes)
	if err := r.places.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { r.places.Release(n) }, nil
}
