package wasm

import (
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// meter counts the work of a guest and stops it, through the globals that the
// rewrite added to its module. Only halt may be called while the guest runs.
type meter struct {
	rewritten                *rewrite.Result
	tick, fuel, budget, stop api.MutableGlobal
	most                     int64 // budget of this run
}

func (m *meter) attach(module api.Module, r *rewrite.Result) {
	global := func(name string) api.MutableGlobal { return module.ExportedGlobal(name).(api.MutableGlobal) }
	m.rewritten = r
	m.tick, m.fuel = global(rewrite.Tick), global(rewrite.Fuel)
	m.budget, m.stop = global(rewrite.Budget), global(rewrite.Stop)
}

// begin starts counting, up to a limit; 0 = no limit.
func (m *meter) begin(limit int64) {
	tick, fuel, most := m.rewritten.Allot(limit)
	m.tick.Set(api.EncodeI32(tick))
	m.fuel.Set(uint64(fuel))
	if most != m.most {
		m.budget.Set(uint64(most))
		m.most = most
	}
}

// used returns the fuel since begin.
func (m *meter) used() int64 {
	return rewrite.Used(int64(m.fuel.Get()), api.DecodeI32(m.tick.Get()))
}

// halt makes the guest trap soon, permanently.
func (m *meter) halt() {
	if m.stop != nil {
		m.stop.Set(1)
	}
}

// exhausted reports whether the guest used up its budget.
func (m *meter) exhausted() bool { return m.used() > m.most }
