package wasm

import (
	"github.com/tetratelabs/wazero/api"
)

// callee is an exported function of an instance. Looking one up allocates 10
// KB, so that is done when it is first called.
type callee struct {
	instance *Instance
	module   api.Module
	name     string
	f        api.Function // nil = not looked up yet
}

// callees are exports of the main module.
func (i *Instance) callees(names []string) []callee {
	all := make([]callee, len(names))
	for n, name := range names {
		all[n] = callee{instance: i, module: i.module, name: name}
	}
	return all
}

// optional returns an export of a module; nil = it has none of that name.
func (i *Instance) optional(m api.Module, name string) *callee {
	c := &callee{instance: i, module: m, name: name}
	if !c.find() { // which costs little if there is none
		return nil
	}
	return c
}

// find looks the function up and reports whether there is one.
func (c *callee) find() bool {
	f := c.module.ExportedFunction(c.name)
	if f == nil {
		return false
	}
	c.instance.plugin.engine.layout.install(f, c.instance.stack)
	c.f = f
	return true
}

// call calls the function. No other call into the instance may be in progress.
func (c *callee) call(params []uint64) error {
	if c.f == nil {
		c.find()
	}
	return c.f.CallWithStack(&c.instance.frame, params)
}
