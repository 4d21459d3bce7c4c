package jobabi

import (
	"context"
	"math"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// kvCalls are about the keys and values of the worker.
func kvCalls() []Function {
	return []Function{
		{Name: "kv_get", Args: []Arg{textArg("key", "klen"), roomArg("buf", "cap")}, Results: []api.ValueType{i32}, call: kvGet},
		{Name: "kv_version", Args: []Arg{textArg("key", "klen")}, Results: []api.ValueType{i64}, call: kvVersion},
		{Name: "kv_set", Args: []Arg{textArg("key", "klen"), bytesArg("value", "vlen"), int64Arg("ttl")}, Errno: true, call: kvSet},
		{Name: "kv_del", Args: []Arg{textArg("key", "klen")}, Errno: true, call: kvDel},
		{Name: "kv_add", Args: []Arg{textArg("key", "klen"), int64Arg("delta")}, Results: []api.ValueType{i64}, call: kvAdd},
		{Name: "kv_cas", Args: []Arg{textArg("key", "klen"), int64Arg("version"), bytesArg("value", "vlen")}, Errno: true, call: kvCas},
	}
}

// kv_get(key, klen, buf, cap) → n fills the buffer with the value of a key, or returns its size.
func kvGet(ctx context.Context, m api.Module, stack []uint64) {
	value, e := attempt(ctx).KVGet(view(m, "kv_get", stack[0], stack[1]))
	if e != hostcall.OK {
		errno(stack, e)
		return
	}
	fill(m, "kv_get", stack, stack[2], stack[3], value)
}

// kv_version(key, klen) → version returns the version of a key; 0 = there is none.
func kvVersion(ctx context.Context, m api.Module, stack []uint64) {
	version, e := attempt(ctx).KVVersion(view(m, "kv_version", stack[0], stack[1]))
	if e != hostcall.OK {
		version = int64(e)
	}
	stack[0] = api.EncodeI64(version)
}

// kv_set(key, klen, value, vlen, ttl) → errno sets a value for ttl milliseconds.
func kvSet(ctx context.Context, m api.Module, stack []uint64) {
	key, value := view(m, "kv_set", stack[0], stack[1]), view(m, "kv_set", stack[2], stack[3])
	errno(stack, attempt(ctx).KVSet(key, value, int64(stack[4])))
}

// kv_del(key, klen) → errno removes a key.
func kvDel(ctx context.Context, m api.Module, stack []uint64) {
	errno(stack, attempt(ctx).KVDelete(view(m, "kv_del", stack[0], stack[1])))
}

// kv_add(key, klen, delta) → sum adds to a number. Sums may be negative, so
// errors are the smallest numbers: −2^63 − errno.
func kvAdd(ctx context.Context, m api.Module, stack []uint64) {
	sum, e := attempt(ctx).KVAdd(view(m, "kv_add", stack[0], stack[1]), int64(stack[2]))
	if e != hostcall.OK {
		sum = math.MinInt64 - int64(e)
	}
	stack[0] = api.EncodeI64(sum)
}

// kv_cas(key, klen, version, value, vlen) → errno sets a value if the key has that version.
func kvCas(ctx context.Context, m api.Module, stack []uint64) {
	key, value := view(m, "kv_cas", stack[0], stack[1]), view(m, "kv_cas", stack[3], stack[4])
	errno(stack, attempt(ctx).KVCompareAndSet(key, int64(stack[2]), value))
}
