package wasm

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// stack is the memory that calls into an instance run on, one at a time.
//
// wazero gives each function a stack of its own on Go's heap, doubles it when
// it is full, up to 80 MB, and keeps it: an endless recursion takes 170 MB for a
// moment, and nothing counts that. So each instance brings a stack of a fixed
// size, whose pages take memory when they are used, and gives it to all its
// functions. wazero has no call for it: see layout.
type stack struct {
	memory []byte
}

// keptStack is how much of a stack stays in memory between jobs, at most.
const keptStack = 64 << 10

// trimAfter is the fuel that a job must have used for its stack to be trimmed,
// so that short jobs don't pay for a system call. With less a stack becomes deep
// only if the guest is made for it, and no deeper than it may be.
const trimAfter = rewrite.DefaultInterval

// trim gives back what a deep recursion has used.
func (s *stack) trim() { releaseStack(s.memory[:len(s.memory)-keptStack]) }

// stacks are those that are not in use. Making one costs more than a job.
type stacks struct {
	mu     sync.Mutex // protects what follows
	free   []*stack
	closed bool
}

// mostFree is how many stacks are kept for later.
const mostFree = 64

// take returns a stack.
func (s *stacks) take() (*stack, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.free) - 1; last >= 0 {
		st := s.free[last]
		s.free = s.free[:last]
		return st, nil
	}
	memory, err := mapStack(runtime.StackBytes)
	if err != nil {
		return nil, fmt.Errorf("make a stack: %w", err)
	}
	return &stack{memory: memory}, nil
}

// give takes a stack back.
func (s *stacks) give(st *stack) error {
	st.trim()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && len(s.free) < mostFree {
		s.free = append(s.free, st)
		return nil
	}
	return unmapStack(st.memory)
}

// close frees the stacks that are not in use, and then those that come back.
func (s *stacks) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for _, st := range s.free {
		errs = append(errs, unmapStack(st.memory))
	}
	s.free = nil
	return errors.Join(errs...)
}

// layout is where wazero 1.12 keeps what it knows of a function's stack, in the
// type behind [api.Function]: the stack itself, the address of its end, from
// which it grows down, and the address of its beginning, which each function
// compares with before it takes its part.
type layout struct {
	of                 reflect.Type // what it is the layout of
	stack, top, bottom uintptr      // offsets
}

// errLayout says that this is not the wazero that is known here.
var errLayout = errors.New("wazero keeps the stacks of guests elsewhere")

// layoutOf finds the layout by the names and types of the fields.
func layoutOf(f api.Function) (l layout, err error) {
	of := reflect.TypeOf(f)
	t := of
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return layout{}, errLayout
	}
	t = t.Elem()
	stack, ok := t.FieldByName("stack")
	top, hasTop := t.FieldByName("stackTop")
	context, hasContext := t.FieldByName("execCtx")
	if !ok || !hasTop || !hasContext || context.Type.Kind() != reflect.Struct {
		return layout{}, errLayout
	}
	bottom, hasBottom := context.Type.FieldByName("stackBottomPtr")
	if !hasBottom || stack.Type != reflect.TypeFor[[]byte]() || top.Type != reflect.TypeFor[uintptr]() || bottom.Type != reflect.TypeFor[*byte]() {
		return layout{}, errLayout
	}
	return layout{of: of, stack: stack.Offset, top: top.Offset, bottom: context.Offset + bottom.Offset}, nil
}

// full is how long wazero believes the stack to be. It doubles one that is at
// most 50,000,000 bytes long and refuses a longer one, which is a clean error
// of the guest. It never looks at what would be beyond the end.
const full = 64 << 20

// lend makes a function run on a stack. A function of the host, which a guest
// may import and export again, is of another type: it runs on Go's stack.
func (l layout) lend(f api.Function, s *stack) {
	if reflect.TypeOf(f) != l.of {
		return
	}
	at := reflect.ValueOf(f).UnsafePointer()
	bottom := unsafe.SliceData(s.memory)
	*(*[]byte)(unsafe.Add(at, l.stack)) = unsafe.Slice(bottom, full)
	*(*uintptr)(unsafe.Add(at, l.top)) = (uintptr(unsafe.Pointer(bottom)) + uintptr(len(s.memory)) - 1) &^ 15
	*(**byte)(unsafe.Add(at, l.bottom)) = bottom
}
