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
// wazero gives each function a stack of its own on Go's heap, doubles it when it
// is full, up to 80 MB, and keeps it: an endless recursion briefly takes 170 MB,
// which no limit counts. So each instance has a stack of a fixed size, whose
// pages take memory when they are used, and gives it to all its functions.
// wazero has no call for it: see layout.
type stack struct {
	memory []byte
}

// keptStack is the most of a stack that stays in memory between jobs.
const keptStack = 64 << 10

// trimAfter is the fuel that a job must have used for its stack to be trimmed,
// so that short jobs don't pay for a system call. With less, a stack becomes
// deep only if the guest is made for it, and no deeper than allowed.
const trimAfter = rewrite.DefaultInterval

// trim releases what a deep recursion has used.
func (s *stack) trim() { releaseStack(s.memory[:len(s.memory)-keptStack]) }

// stacks holds unused stacks. Creating one costs more than a job.
type stacks struct {
	mu     sync.Mutex // protects what follows
	free   []*stack
	closed bool
}

// mostFree is how many unused stacks are kept.
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

// give takes back a stack.
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

// close frees the unused stacks, and makes give free those that come back.
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

// layout is where wazero 1.12 keeps a function's stack, in the type behind
// [api.Function]: the stack itself, the address of its end, from which it grows
// down, and the address of its beginning, which each function checks before it
// takes its part.
type layout struct {
	of                 reflect.Type // whose layout it is
	stack, top, bottom uintptr      // offsets
}

// errLayout means that this is not the wazero version known here.
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

// full is how long wazero believes the stack to be. It doubles a stack of at
// most 50,000,000 bytes and refuses to grow a longer one, which is a clean
// error of the guest. It never accesses what would be beyond the end.
const full = 64 << 20

// install makes a function run on a stack. A host function, which a guest may
// import and export again, is of another type: it runs on Go's stack.
func (l layout) install(f api.Function, s *stack) {
	if reflect.TypeOf(f) != l.of {
		return
	}
	at := reflect.ValueOf(f).UnsafePointer()
	bottom := unsafe.SliceData(s.memory)
	*(*[]byte)(unsafe.Add(at, l.stack)) = unsafe.Slice(bottom, full)
	*(*uintptr)(unsafe.Add(at, l.top)) = (uintptr(unsafe.Pointer(bottom)) + uintptr(len(s.memory)) - 1) &^ 15
	*(**byte)(unsafe.Add(at, l.bottom)) = bottom
}
