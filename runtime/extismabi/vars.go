package extismabi

import (
	"bytes"
	"context"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// varCalls store values between the calls of a plugin.
func varCalls() []hostCall {
	return []hostCall{
		{name: "var_get", params: []api.ValueType{i32, i32}, results: []api.ValueType{i32}, call: varGet},
		{name: "var_set", params: []api.ValueType{i32, i32, i32, i32}, call: varSet},
	}
}

// vars are the vars of a plugin without a KV, or with vars of its own.
type vars struct {
	limit  int64
	size   int64 // of all vars, as sizeOf counts
	values map[string][]byte
}

// varOverhead is what Extism counts for a var besides its name and value, so
// that the number of small ones is bounded too.
const varOverhead = 40

func sizeOf(name, value []byte) int64 { return int64(len(name)) + int64(len(value)) + varOverhead }

// set stores a copy of value; ok is false if there would be too much. As in
// Extism, the limit itself is too much.
func (v *vars) set(name, value []byte) (ok bool) {
	if len(name) > maxName {
		return false
	}
	size := v.size + sizeOf(name, value)
	if old, was := v.values[string(name)]; was {
		size -= sizeOf(name, old)
	}
	if size >= v.limit {
		return false
	}
	if v.values == nil {
		v.values = map[string][]byte{}
	}
	v.values[string(name)] = bytes.Clone(value)
	v.size = size
	return true
}

// get returns the value of a name; nil = it has none.
func (v *vars) get(name []byte) []byte {
	if len(name) > maxName {
		return nil
	}
	return v.values[string(name)]
}

func (v *vars) remove(name []byte) {
	if len(name) > maxName {
		return
	}
	if old, was := v.values[string(name)]; was {
		v.size -= sizeOf(name, old)
		delete(v.values, string(name))
	}
}

func (v *vars) clear() {
	if len(v.values) > 100 {
		v.values = nil // rather than keep the room for that many
	}
	clear(v.values)
	v.size = 0
}

// inKV reports whether the vars of an attempt are the worker's, rather than the
// plugin's own.
func (p *Plugin) inKV(at *hostcall.Attempt) bool { return !p.options.KeepVars && at.HasKV() }

// var_get(name) → value, or 0 if there is none.
func varGet(ctx context.Context, m api.Module, stack []uint64) {
	p, at := callOf(ctx)
	name := guestText(m, "var_get", stack[0], stack[1])
	if !p.inKV(at) {
		p.hold(stack, p.vars.get(name))
		return
	}
	value, e := at.KVGet(name)
	if e != hostcall.OK && e != hostcall.ErrNotFound {
		trapKV("var_get", e)
	}
	p.hold(stack, value)
}

// var_set(name, value) sets a var; a value of 0 removes it.
func varSet(ctx context.Context, m api.Module, stack []uint64) {
	p, at := callOf(ctx)
	if p.vars.limit == 0 {
		trap("var_set", jobhost.CategoryResource, "this worker has no vars")
	}
	name, value := guestText(m, "var_set", stack[0], stack[1]), guestText(m, "var_set", stack[2], stack[3])
	remove, kv, e := uint32(stack[2]) == 0, p.inKV(at), hostcall.OK
	switch {
	case !kv && remove:
		p.vars.remove(name)
	case remove:
		e = at.KVDelete(name)
	case !kv && !p.vars.set(name, value), kv && sizeOf(name, value) >= p.vars.limit:
		e = hostcall.ErrLimit
	case kv:
		e = at.KVSet(name, value, 0)
	}
	if e != hostcall.OK {
		trapKV("var_set", e)
	}
}

// trapKV ends an attempt whose vars could not be read or written.
func trapKV(call string, e hostcall.Errno) {
	switch e {
	case hostcall.ErrLimit:
		trap(call, jobhost.CategoryResource, "the variable store is full")
	case hostcall.ErrInvalid:
		trap(call, jobhost.CategoryValidation, "the name can't be that of a variable")
	case hostcall.ErrDenied:
		trap(call, jobhost.CategoryValidation, "this worker may not use variables")
	default:
		trap(call, jobhost.CategorySystem, "the variable store does not answer: errno %d", e)
	}
}
