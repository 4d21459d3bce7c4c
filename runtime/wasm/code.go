package wasm

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost"
)

// code is the compiled code of the modules of a plugin. Plugins with the same
// modules share it, however many workers use them.
//
// wazero reads the folder in the cache whenever it doesn't have a module in
// memory, so it may look for one only right after the folder was checked, or
// while another plugin holds the module. Therefore taking or dropping the code
// of a digest requires the lock of the digest.
type code struct {
	digest string
	cache  wazero.CompilationCache // of this code alone
	users  int                     // protected by the lock of the digest
}

// codes holds the code in use, by digest.
type codes struct {
	turn keyedLock

	mu   sync.Mutex // protects used
	used map[string]*code
}

func (c *codes) get(digest string) *code {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used[digest]
}

func (c *codes) put(made *code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used == nil {
		c.used = map[string]*code{}
	}
	c.used[made.digest] = made
}

func (c *codes) remove(digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.used, digest)
}

// compile creates the plugin's runtime with the code of its parts: shared with
// another plugin that has the same parts, or from the cache, or compiled now.
func (p *Plugin) compile(ctx context.Context) error {
	codes := &p.engine.codes
	digest := p.engine.digestOf(p.parts)
	defer codes.turn.lock(digest)()
	shared := codes.get(digest)
	if shared == nil {
		made, err := p.compileFirst(ctx, digest)
		if err != nil {
			return err
		}
		shared = made
		codes.put(shared)
	} else if err := p.build(ctx, shared.cache); err != nil {
		return err
	}
	shared.users++
	p.code = shared
	for _, part := range p.parts {
		part.rewritten.Module = nil
	}
	return nil
}

// compileFirst obtains the code of a plugin if there is none in memory yet.
func (p *Plugin) compileFirst(ctx context.Context, digest string) (*code, error) {
	if f := p.engine.cache.enter(ctx, digest); f != nil {
		defer f.leave()
		kept, err := f.compilation()
		if err == nil {
			if err = p.build(ctx, kept); err == nil {
				f.finish(ctx)
				return &code{digest: digest, cache: kept}, nil
			}
			_ = kept.Close(ctx) // the reason why it can't be compiled is what counts
			if !isCacheFault(err) {
				return nil, err
			}
		}
		f.distrust(ctx, err)
	}
	inMemory := wazero.NewCompilationCache()
	if err := p.build(ctx, inMemory); err != nil {
		_ = inMemory.Close(ctx)
		return nil, err
	}
	return &code{digest: digest, cache: inMemory}, nil
}

// isCacheFault reports whether an error is caused by the cache rather than the
// module.
func isCacheFault(err error) bool {
	// wazero has no sentinel for a cache that it can't read.
	return isFault(err) || err != nil && strings.HasPrefix(err.Error(), "compilationcache:")
}

// build creates the plugin's runtime, with what the plugin imports, and
// compiles its parts in it. After an error nothing is left of it.
func (p *Plugin) build(ctx context.Context, cache wazero.CompilationCache) (err error) {
	for _, part := range p.parts {
		part.compiled = nil
	}
	defer func() {
		if err != nil {
			_ = p.unbuild(ctx)
		}
	}()
	p.runtime = wazero.NewRuntimeWithConfig(ctx, p.engine.runtimeConfig(cache).WithCoreFeatures(p.coreFeatures()))
	if err := p.abi.define(ctx, p.runtime); err != nil {
		return err
	}
	for _, part := range p.parts {
		part.compiled, err = compile(ctx, p.runtime, part.rewritten.Module)
		switch {
		case isCacheFault(err):
			return err
		case err != nil:
			return jobhost.Invalid("", rebuild, "is not a valid WebAssembly module: %v", err)
		}
	}
	return nil
}

// unbuild frees what build has created, even if it was interrupted.
func (p *Plugin) unbuild(ctx context.Context) error {
	errs := []error{p.runtime.Close(ctx)}
	for _, part := range p.parts {
		if part.compiled != nil {
			errs = append(errs, part.compiled.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

// dropCode frees the plugin's runtime, and its code if no other plugin uses it.
func (p *Plugin) dropCode(ctx context.Context) error {
	code := p.code
	if code == nil {
		return nil
	}
	p.code = nil
	codes := &p.engine.codes
	defer codes.turn.lock(code.digest)()
	err := p.unbuild(ctx)
	if code.users--; code.users > 0 {
		return err
	}
	codes.remove(code.digest)
	p.engine.cache.touch(code.digest)
	return errors.Join(err, code.cache.Close(ctx))
}

// keyedLock is a lock per key.
type keyedLock struct {
	mu   sync.Mutex // protects held
	held map[string]*keyHold
}

// keyHold is a key that a goroutine holds or waits for.
type keyHold struct {
	sync.Mutex
	users int
}

// lock waits for the key and returns a function that releases it.
func (l *keyedLock) lock(key string) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*keyHold{}
	}
	hold := l.held[key]
	if hold == nil {
		hold = &keyHold{}
		l.held[key] = hold
	}
	hold.users++
	l.mu.Unlock()
	hold.Lock()
	return func() {
		hold.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if hold.users--; hold.users == 0 {
			delete(l.held, key)
		}
	}
}
