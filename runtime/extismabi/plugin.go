package extismabi

import (
	"bytes"
	"cmp"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime/extism"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Plugin is the host's side of one instance of a plugin: its kernel, and the
// state of its calls. It is not safe for concurrent use.
type Plugin struct {
	options Options
	kernel  api.Module
	memory  api.Memory
	arena   arena
	linked  map[string]api.Module

	// ready is the held result that the kernel is about to take.
	ready []byte
	vars  vars
	// last is the response of the last request, nil = there was none.
	last *hostcall.HTTPResponse
}

func newPlugin(o Options) *Plugin {
	o.MemoryBytes = cmp.Or(o.MemoryBytes, defaultMemory)
	o.VarBytes = max(cmp.Or(o.VarBytes, extism.DefaultVarBytes), 0)
	o.ResponseBytes = min(max(cmp.Or(o.ResponseBytes, defaultResponse), 0), math.MaxInt32)
	return &Plugin{
		options: o,
		arena:   arena{limit: max((o.MemoryBytes+pageBytes-1)/pageBytes, 1) * pageBytes, given: o.Memory},
		vars:    vars{limit: o.VarBytes},
	}
}

// Begin gives a pristine plugin its input. A non-nil result is the attempt's
// failure: the entry must not be called then.
func (p *Plugin) Begin(at *hostcall.Attempt) *jobhost.Failure {
	p.arena.refused = false
	if !p.put(at.Input) {
		return at.Failure(jobhost.FailMemory, jobhost.CategoryResource,
			fmt.Sprintf("there is no room for the input of %d bytes in the memory of at most %d", len(at.Input), p.arena.limit)).Failure
	}
	return nil
}

// End returns the outcome of a call of an entry that returned, or exited with a
// code, which counts as returning it. An entry without a result returns 0.
func (p *Plugin) End(at *hostcall.Attempt, rc uint32) jobhost.Outcome {
	if outcome, failed := p.Failed(at); failed {
		return outcome
	}
	if rc != 0 {
		return at.Failure(jobhost.FailWorker, jobhost.CategoryUnknown,
			fmt.Sprintf("the plugin returned %d and no error text", int32(rc)))
	}
	return at.Outcome(p.output())
}

// Failed returns the outcome that the guest requested by error_set, and whether
// it did. It should be checked even if the guest trapped.
func (p *Plugin) Failed(at *hostcall.Attempt) (jobhost.Outcome, bool) {
	said := p.failure()
	if said == nil {
		return jobhost.Outcome{}, false
	}
	message := text.AppendLine(nil, bytes.TrimRight(said, "\r\n"), hostcall.MaxMessageBytes)
	return at.Failure(jobhost.FailWorker, jobhost.CategoryUnknown, string(message)), true
}

// Refused reports whether the kernel was refused more memory than its limit
// since Begin.
func (p *Plugin) Refused() bool { return p.arena.refused }

// Reset resets the plugin after an attempt, except for the vars that it is to
// keep, and the memory of its guests, for which the engine is responsible. It
// reports whether the plugin is worth keeping: one whose kernel has grown would
// hold on to that memory, so its instance is better replaced.
func (p *Plugin) Reset() (keep bool) {
	p.clearKernel()
	p.ready, p.last = nil, nil
	if !p.options.KeepVars {
		p.vars.clear()
	}
	return !p.Outgrown()
}

// Outgrown reports whether the kernel's memory has become larger than an idle plugin may hold. Then the plugin is
// better replaced than reset, which takes long.
func (p *Plugin) Outgrown() bool { return p.memory.Size() > maxIdle }

// maxIdle is how much memory the kernel of an idle plugin may hold.
const maxIdle = 1 << 20
