package wasm

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/jobhost/jobhost/runtime/wasm/preflight"
)

// farBeyond is how many times its compile_memory a module may need and still be
// rewritten, only to say how much that is. What needs more is refused before.
const farBeyond = 4

// translate makes machine code of the modules.
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

// estimate looks at the code of a module.
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

// weigh compares what compiling a module takes, in the form that it was rewritten
// to, with what it may take.
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

// roomBytes is the memory that plugins which are loaded at one time take for
// being compiled, by the estimate, unless one alone takes more.
const roomBytes = 1 << 30

// room lets those in that fit beside each other. Large ones are compiled one
// after the other.
type room struct{ places *semaphore.Weighted }

func newRoom() room { return room{semaphore.NewWeighted(roomBytes)} }

// enter waits until there is so much room, or all.
func (r room) enter(ctx context.Context, bytes int64) (leave func(), err error) {
	n := min(max(bytes, 0), roomBytes)
	if err := r.places.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { r.places.Release(n) }, nil
}
