package hostcall

import "time"

// KV is an optional ability of [Services]: keys and values of the attempt's
// worker. What an attempt changes it sees itself at once; others see it when
// the attempt has succeeded, and never if it fails.
//
// The goroutine that runs the guest calls it. Keys and values belong to the
// caller, who may change a key or value that it handed over, but not a value
// that it got.
type KV interface {
	// KVGet returns the value of a key, or [ErrNotFound].
	KVGet(at *Attempt, key []byte) ([]byte, Errno)
	// KVSet sets a value; ttl 0 = for good. It answers [ErrLimit] when all of
	// the worker's keys and values together would be over their quota, and
	// [ErrInvalid] for a key that can't be one.
	KVSet(at *Attempt, key, value []byte, ttl time.Duration) Errno
	// KVDelete removes a key; one that isn't there is fine.
	KVDelete(at *Attempt, key []byte) Errno
}

// KV returns the keys and values that the attempt may use, nil = none.
func (a *Attempt) KV() KV {
	kv, _ := a.Services.(KV)
	return kv
}
