package jobhost

import (
	"math"
	"time"
)

// KV are the keys and values of the worker, which all its jobs share. A job
// sees its own changes at once. They are applied when the job succeeds, exactly
// once; if it fails, nothing has changed. A key is 1 to 512 bytes of UTF-8
// without control characters, a value has up to 1 MiB.
//
// Errors: [ErrInvalid] for an invalid key, [ErrLimit] for values that are too
// large or too many.
type KV struct{ host host }

// KV returns the keys and values of the worker.
func (j *Job) KV() KV { return KV{j.host} }

// Get returns the value of a key. The error is [ErrNotFound] if there is none.
func (kv KV) Get(key string) ([]byte, error) {
	value, e := kv.host.KVGet(key)
	return value, failed("get key "+key, e)
}

// Set sets a key for ttl, rounded up to milliseconds; 0 = no expiry.
func (kv KV) Set(key string, value []byte, ttl time.Duration) error {
	ms := int64(ttl / time.Millisecond)
	if ttl%time.Millisecond > 0 {
		ms++
	}
	return failed("set key "+key, kv.host.KVSet(key, value, ms))
}

// Delete removes a key; a missing one is not an error.
func (kv KV) Delete(key string) error { return failed("delete key "+key, kv.host.KVDelete(key)) }

// Add adds to a value that is a decimal integer, 0 if there is none, and
// returns the sum. Concurrent additions of several jobs add up: it is the way
// to count. The error is [ErrInvalid] for a value that is not a number.
func (kv KV) Add(key string, delta int64) (int64, error) {
	sum := kv.host.KVAdd(key, delta)
	if sum < math.MinInt64+256 { // errors are the smallest numbers
		return 0, failed("add to key "+key, Errno(math.MinInt64-sum))
	}
	return sum, nil
}

// Version returns the version of a key, 0 if there is none, for
// [KV.CompareAndSet]. Ask for it before the value.
func (kv KV) Version(key string) (int64, error) {
	version := kv.host.KVVersion(key)
	if version < 0 {
		return 0, failed("read version of key "+key, Errno(version))
	}
	return version, nil
}

// CompareAndSet sets a key if it has the version that this job has read. The
// error is [ErrConflict] if it has another one. If the key is changed elsewhere
// before this job has succeeded, the attempt fails and is retried.
func (kv KV) CompareAndSet(key string, version int64, value []byte) error {
	return failed("compare and set key "+key, kv.host.KVCompareAndSet(key, version, value))
}
