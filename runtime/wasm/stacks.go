package wasm

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// The stack of a guest is memory of the host: wazero allocates it on Go's heap
// and doubles it when it is full, up to 80 MB, for which it needs the old one
// and the new one for a moment. So a few recursions at once could take all
// memory, whatever limits there are on linear memories.
//
// Each time a guest yields, the host looks at how large its stack is and how
// much of it is used. A sandbox may have ownStack without asking. What it may
// come to have until it yields next, beyond that, is taken from a budget that
// all sandboxes of an engine share. How far a stack can grow between two yields
// is known from the rewrite.
const (
	// deepest is how much of a stack a guest may use, in bytes. Engines of
	// browsers stop at about a megabyte.
	deepest = 16 << 20
	// ownStack is how large a stack may be that counts for its sandbox alone:
	// four times what it may grow between two yields, and at most this.
	ownStack = 8 << 20
	// keptStack is how large a stack may be that is kept for the next call.
	keptStack = 1 << 20
	// defaultStacks is the budget of an engine whose configuration has none.
	defaultStacks = 256 << 20
)

// errDeep ends a guest whose calls are nested too deeply, errFull one that the
// budget has no room for.
var (
	errDeep = errors.New("the stack is full")
	errFull = errors.New("the host has no more memory for deep stacks")
)

// budget is memory that the sandboxes of an engine share.
type budget struct {
	most int64
	used atomic.Int64
}

// take takes n bytes, which may be negative, and reports whether they were there.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) <= b.most || n <= 0 {
		return true
	}
	b.used.Add(-n)
	return false
}

// defineHook gives a runtime the function that guests yield by.
func defineHook(ctx context.Context, r wazero.Runtime) error {
	yield := api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
		if f, ok := ctx.(*frame); ok {
			f.yield(uintptr(unsafe.Pointer(unsafe.SliceData(stack))))
		}
	})
	_, err := r.NewHostModuleBuilder(rewrite.HookModule).
		NewFunctionBuilder().WithGoModuleFunction(yield, nil, nil).Export(rewrite.Hook).Instantiate(ctx)
	return err
}

// stacked is the stack of the call under way.
type stacked struct {
	budget *budget
	growth int64   // between two yields, at most
	stack  *[]byte // nil = no call is under way
	held   int64   // of the budget
}

// yield is called by a guest from time to time. sp is where its stack ends.
func (s *stacked) yield(sp uintptr) {
	if s.stack == nil {
		return
	}
	size := int64(len(*s.stack))
	used := int64(uintptr(unsafe.Pointer(unsafe.SliceData(*s.stack)))+uintptr(size)) - int64(sp)
	if used+s.growth <= size && size <= keptStack && s.held == 0 { // nearly always
		return
	}
	if used > deepest {
		panic(errDeep) //nolint:forbidigo // how a host function leaves the guest: wazero recovers it
	}
	if !s.hold(s.need(size, used)) {
		panic(errFull) //nolint:forbidigo // as above
	}
}

// need is how much of the budget a stack needs until the guest yields next.
func (s *stacked) need(size, used int64) int64 {
	all := size
	if most := used + s.growth; most > size {
		next := size
		for next < most {
			next *= 2
		}
		all += next // both are there while one is copied to the other
	}
	if all <= min(4*s.growth, ownStack) {
		return 0
	}
	return all
}

// hold makes what is held of the budget so much.
func (s *stacked) hold(n int64) bool {
	if !s.budget.take(n - s.held) {
		return false
	}
	s.held = n
	return true
}

// callee is an exported function of an instance. Looking one up allocates
// 10 KB, the beginning of its stack, so that is done when it is first called.
type callee struct {
	module api.Module
	name   string
	f      api.Function // nil = not looked up yet
	stack  *[]byte
}

// call calls the function. A stack that has become large is given up with it.
func (c *callee) call(f *frame, params []uint64) error {
	if c.f == nil {
		c.f = c.module.ExportedFunction(c.name)
		c.stack = stackOf(c.f)
	}
	f.stack = c.stack
	err := c.f.CallWithStack(f, params)
	f.stack = nil
	if len(*c.stack) > keptStack {
		c.f, c.stack = nil, nil
	}
	f.hold(0)
	return err
}

// stackOf returns the stack that calls of a function run on. wazero has no call
// that tells; [Engine.testStacks] finds out if another version has it
// elsewhere.
func stackOf(f api.Function) *[]byte {
	engine := reflect.ValueOf(f)
	if engine.Kind() != reflect.Pointer || engine.Elem().Kind() != reflect.Struct {
		return nil
	}
	field := engine.Elem().FieldByName("stack")
	if !field.IsValid() || field.Type() != reflect.TypeFor[[]byte]() {
		return nil
	}
	return (*[]byte)(unsafe.Pointer(field.UnsafeAddr()))
}
