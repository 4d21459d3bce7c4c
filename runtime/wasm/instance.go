package wasm

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/jobabi"
)

// Instance is one sandbox; it implements [runtime.Instance].
type Instance struct {
	plugin *Plugin
	guest  api.Module
	gate   api.Module
	memory *memory
	stop   *stopper
	stdio  *stdio

	// frame carries the attempt to the host calls.
	frame *jobabi.Frame
	// starting ends the sleeps of a guest that starts; nil afterwards.
	starting <-chan struct{}
	// entries are the functions of the gate, each looked up when it is first
	// called, since a lookup allocates 10 KB.
	entries []api.Function
	buf     api.Function // the mailbox; nil = the guest has none
	box     uint64       // where the mailbox is,
	boxSize uint64       // and how much the guest said fits in
	// stack is for the parameters and results of a call.
	stack [1]uint64
}

// Run runs one attempt. The guest is entered only here, and never again while
// it is under way.
func (i *Instance) Run(ctx context.Context, at *hostcall.Attempt) runtime.Result {
	entry, ok := i.entry(at.Entry)
	if !ok {
		return runtime.Result{Outcome: noEntry(i.plugin, at)}
	}
	switch i.stop.begin(ctx, at.Deadline) {
	case byDeadline:
		return runtime.Result{Outcome: at.TimedOut()}
	case byContext:
		return runtime.Result{Outcome: at.Stopped(ctx)}
	case alreadyBusy:
		return runtime.Result{Outcome: at.Failure(jobhost.FailInternal, jobhost.CategorySystem, "the sandbox is in use")}
	}
	i.frame.Enter(at)
	i.stdio.enter(at)
	i.memory.refused = false

	result, err := i.call(entry, at.Input)
	i.stdio.flush()
	at.Flush()
	stopped := i.stop.end()
	if err != nil {
		return runtime.Result{Outcome: i.failed(ctx, at, stopped, err), Broken: true}
	}
	view, err := i.view(result)
	if err != nil {
		return runtime.Result{Outcome: badResult(at, err), Broken: true}
	}
	return runtime.Result{Outcome: at.Outcome(view), Broken: stopped != notStopped}
}

// entry returns the function of that name; "" is the plugin's default.
func (i *Instance) entry(name string) (api.Function, bool) {
	n, ok := i.plugin.entries[name]
	if !ok {
		return nil, false
	}
	if i.entries[n] == nil {
		i.entries[n] = i.gate.ExportedFunction(i.plugin.info.Entries[n])
	}
	return i.entries[n], true
}

// call hands over the input and calls the entry.
func (i *Instance) call(entry api.Function, input []byte) (result uint64, err error) {
	if i.buf != nil {
		if err := i.post(input); err != nil {
			return 0, err
		}
	}
	i.stack[0] = api.EncodeU32(uint32(len(input)))
	if err := entry.CallWithStack(i.frame, i.stack[:]); err != nil {
		return 0, err
	}
	return i.stack[0], nil
}

// post writes the input to the mailbox, which grows only when it must.
func (i *Instance) post(input []byte) error {
	n := uint64(len(input))
	if n == 0 {
		return nil
	}
	if n > i.boxSize {
		i.stack[0] = n
		if err := i.buf.CallWithStack(i.frame, i.stack[:]); err != nil {
			i.boxSize = 0
			return err
		}
		i.box, i.boxSize = uint64(api.DecodeU32(i.stack[0])), n
		if i.box == 0 || i.box+n > uint64(i.guest.Memory().Size()) {
			place := i.box
			i.box, i.boxSize = 0, 0
			return &badPlace{fmt.Sprintf("%s(%d) returned %d, where there is no room for the input", jobabi.Buffer, n, place)}
		}
	}
	if !i.guest.Memory().Write(uint32(i.box), input) {
		return &badPlace{jobabi.Buffer + " is outside of the memory"}
	}
	return nil
}

// view returns the bytes that a result points to, which are the guest's.
func (i *Instance) view(result uint64) ([]byte, error) {
	ptr, n := result>>32, result&0xffffffff
	if n == 0 {
		return nil, nil
	}
	memory := i.guest.Memory()
	if size := uint64(memory.Size()); ptr+n > size {
		return nil, &badPlace{fmt.Sprintf("the entry returned %d bytes at %d, outside of the memory of %d bytes", n, ptr, size)}
	}
	b, _ := memory.Read(uint32(ptr), uint32(n))
	return b, nil
}

// badPlace is an answer of the guest that points to nowhere.
type badPlace struct{ message string }

func (e *badPlace) Error() string { return e.message }

// Close frees the instance.
func (i *Instance) Close(ctx context.Context) error {
	i.stop.close()
	var gate error
	if i.gate != nil {
		gate = i.gate.Close(ctx)
	}
	return errors.Join(gate, i.guest.Close(ctx))
}
