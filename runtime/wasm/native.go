package wasm

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/jobabi"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasiabi"
	"github.com/jobhost/jobhost/runtime/wasm/preflight"
)

// nativeABI is jobhost1: see docs/abi.md.
type nativeABI struct{}

func (nativeABI) define(ctx context.Context, r wazero.Runtime) error {
	if err := jobabi.Instantiate(ctx, r); err != nil {
		return err
	}
	return wasiabi.Instantiate(ctx, r)
}

const entrySignature = "(i32) → i64"

func (nativeABI) signature() string { return entrySignature }

func (nativeABI) once(m *module.Module) []string {
	for _, e := range m.Exports {
		if e.Name == jobabi.Initialize && e.Kind == module.KindFunction {
			return []string{e.Name}
		}
	}
	return nil
}

func (nativeABI) contract(p *Plugin, m *module.Module, entry string) error {
	exports := preflight.Functions(m)
	if err := p.isOfSomeKind(exports, entry); err != nil {
		return err
	}
	if err := exportsMemory(m); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(exports)) {
		got := exports[name]
		want, known := map[string]string{
			jobabi.Initialize: "() → ()", jobabi.Wake: "() → ()",
			jobabi.Buffer: "(i32) → i32", jobabi.Run: entrySignature,
		}[name]
		if known && got != want {
			return jobhost.Invalid("", "see docs/abi.md", "exports %s as %s instead of %s", name, got, want)
		}
		if got == entrySignature {
			p.info.Entries = append(p.info.Entries, name)
		}
	}
	return p.chooseEntry(m, entry, jobabi.Run, entrySignature, "an entry takes the length of the input and returns a place: see docs/abi.md")
}

func (nativeABI) guest(_ context.Context, i *Instance) (guest, error) {
	return &nativeGuest{i: i}, nil
}

// nativeGuest calls a guest of the native ABI.
type nativeGuest struct {
	alone
	i       *Instance
	entries []callee
	buf     *callee // the mailbox; nil = the guest has none
	wake    *callee // nil = the guest has none
	asleep  bool    // it was reset, and must be notified before the next call
	box     mailbox
	// stack is for the parameters and results of a call.
	stack [1]uint64
}

// mailbox is where the guest takes its input, and the size that it has announced.
type mailbox struct{ at, size uint64 }

// firstBox is the size of the mailbox that a guest is asked for before the
// snapshot is taken, so that inputs up to this size need no further call. It
// takes no memory until it is written to.
const firstBox = 64 << 10

func (g *nativeGuest) attach() {
	g.entries = g.i.callees(g.i.plugin.info.Entries)
	g.buf, g.wake = g.i.optional(g.i.module, jobabi.Buffer), g.i.optional(g.i.module, jobabi.Wake)
}

func (g *nativeGuest) initialise() error {
	if g.buf == nil {
		return nil
	}
	// A guest with less room returns 0, and is asked again by each job.
	return g.room(firstBox, true)
}

func (g *nativeGuest) remember() any { return g.box }

func (g *nativeGuest) reset(remembered any) bool {
	g.box = remembered.(mailbox)
	g.asleep = true
	return true
}

func (g *nativeGuest) call(entry int, at *hostcall.Attempt) (jobhost.Outcome, error) {
	if outcome, failed := at.LoadInput(g.i.plugin.limits.MemoryBytes); failed {
		return outcome, nil
	}
	view, err := g.enter(entry, at)
	if err != nil {
		return jobhost.Outcome{}, err
	}
	return at.Outcome(view), nil
}

// enter passes the input, calls the entry and returns a view of its result.
func (g *nativeGuest) enter(entry int, at *hostcall.Attempt) ([]byte, error) {
	if g.asleep && g.wake != nil {
		if err := g.wake.call(nil); err != nil {
			return nil, err
		}
	}
	g.asleep = false
	if g.buf != nil {
		if err := g.post(at.Input); err != nil {
			return nil, err
		}
	}
	g.stack[0] = api.EncodeU32(uint32(len(at.Input)))
	if err := g.entries[entry].call(g.stack[:]); err != nil {
		return nil, err
	}
	return g.i.view(g.stack[0]>>32, g.stack[0]&0xffffffff)
}

// post writes the input to the mailbox, which grows only when necessary.
func (g *nativeGuest) post(input []byte) error {
	n := uint64(len(input))
	if n == 0 {
		return nil
	}
	if n > g.box.size {
		if err := g.room(n, false); err != nil {
			return err
		}
	}
	box, ok := g.i.module.Memory().Read(uint32(g.box.at), uint32(n))
	if !ok {
		return &badPlace{jobabi.Buffer + " is outside of the memory"}
	}
	hostcall.Copy(box, input)
	return nil
}

// room asks the guest for a mailbox of n bytes. If it may refuse and does, it
// has no mailbox.
func (g *nativeGuest) room(n uint64, mayRefuse bool) error {
	g.box = mailbox{}
	g.stack[0] = n
	if err := g.buf.call(g.stack[:]); err != nil {
		return err
	}
	at := uint64(api.DecodeU32(g.stack[0]))
	switch fits := at != 0 && at+n <= uint64(g.i.module.Memory().Size()); {
	case fits:
		g.box = mailbox{at: at, size: n}
	case !mayRefuse:
		return &badPlace{fmt.Sprintf("%s(%d) returned %d, where there is no room for the input", jobabi.Buffer, n, at)}
	}
	return nil
}
