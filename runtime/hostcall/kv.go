package hostcall

import (
	"time"

	"github.com/jobhost/jobhost"
)

// KV is an optional ability of [Services]: keys and values of the attempt's
// worker. What an attempt changes it sees itself at once; others see it when
// the attempt has succeeded, and never if it fails. What it has read of a key
// stays as it is while the attempt remembers it, which it does for the last
// few hundred keys.
//
// The goroutine that runs the guest calls it. Keys and values belong to the
// caller, who may change a key or value that it handed over, but not a value
// that it got.
type KV interface {
	// KVGet returns the value of a key with the version that was read, or
	// [ErrNotFound]. The attempt's own changes leave the version as it was.
	KVGet(at *Attempt, key []byte) (value []byte, version int64, e Errno)
	// KVSet sets a value; ttl 0 = for good. It answers [ErrLimit] when all of
	// the worker's keys and values together would be over their quota, or the
	// attempt changes too much, and [ErrInvalid] for a key that can't be one.
	KVSet(at *Attempt, key, value []byte, ttl time.Duration) Errno
	// KVDelete removes a key; one that isn't there is fine.
	KVDelete(at *Attempt, key []byte) Errno
	// KVAdd adds to a value that is a whole number in decimal, 0 without one, and
	// returns the sum as the attempt sees it. Additions of several attempts add
	// up, in whichever order they succeed. [ErrInvalid] for a value that is no
	// number, [ErrLimit] for a sum out of range.
	KVAdd(at *Attempt, key []byte, delta int64) (int64, Errno)
	// KVCompareAndSet sets a value if the key has that version, 0 = there is no
	// such key; otherwise it answers [ErrConflict]. When the version is another
	// one by the time the attempt has succeeded, the attempt fails with
	// [jobhost.FailConflict].
	KVCompareAndSet(at *Attempt, key []byte, version int64, value []byte) Errno
}

// HasKV reports whether the attempt may use keys and values.
func (a *Attempt) HasKV() bool {
	if far := a.far(); far != nil {
		_, _, e := far.KVGet([]byte("."))
		return e != ErrDenied
	}
	_, ok := a.Services.(KV)
	return ok
}

// keys returns the KV for a key that can be one.
func (a *Attempt) keys(key []byte) (KV, Errno) {
	kv, _ := a.Services.(KV)
	switch {
	case kv == nil:
		return nil, ErrDenied
	case len(key) > jobhost.MaxKeyBytes: // before it is copied: a guest may hand over all of its memory
		return nil, ErrInvalid
	case jobhost.CheckKey(string(key)) != nil:
		return nil, ErrInvalid
	}
	return kv, OK
}

// KVGet returns the value of a key: see [KV]. All calls for keys answer
// [ErrDenied] where there are none, and [ErrInvalid] for a key that
// [jobhost.CheckKey] refuses.
func (a *Attempt) KVGet(key []byte) ([]byte, Errno) {
	value, _, e := a.KVLookUp(key)
	return value, e
}

// KVLookUp returns the value of a key with its version. With [ErrNotFound] the
// version is what [Attempt.KVVersion] returns.
func (a *Attempt) KVLookUp(key []byte) (value []byte, version int64, e Errno) {
	if far := a.far(); far != nil {
		return far.KVGet(key)
	}
	kv, e := a.keys(key)
	if e != OK {
		return nil, 0, e
	}
	return kv.KVGet(a, key)
}

// KVVersion returns the version of a key, 0 = there is no such key.
func (a *Attempt) KVVersion(key []byte) (int64, Errno) {
	_, version, e := a.KVLookUp(key)
	if e == ErrNotFound {
		e = OK
	}
	return version, e
}

// KVSet sets a value for ttl milliseconds; 0 = for good. A value over
// [jobhost.MaxValueBytes] is [ErrLimit].
func (a *Attempt) KVSet(key, value []byte, ttl int64) Errno {
	if far := a.far(); far != nil {
		return far.KVSet(key, value, ttl)
	}
	kv, e := a.keys(key)
	switch {
	case e != OK:
		return e
	case len(value) > jobhost.MaxValueBytes:
		return ErrLimit
	case ttl < 0 || ttl > int64(jobhost.MaxDelay/time.Millisecond):
		return ErrInvalid
	}
	return kv.KVSet(a, key, value, time.Duration(ttl)*time.Millisecond)
}

// KVDelete removes a key.
func (a *Attempt) KVDelete(key []byte) Errno {
	if far := a.far(); far != nil {
		return far.KVDelete(key)
	}
	kv, e := a.keys(key)
	if e != OK {
		return e
	}
	return kv.KVDelete(a, key)
}

// KVAdd adds to a number and returns the sum.
func (a *Attempt) KVAdd(key []byte, delta int64) (int64, Errno) {
	if far := a.far(); far != nil {
		return far.KVAdd(key, delta)
	}
	kv, e := a.keys(key)
	if e != OK {
		return 0, e
	}
	return kv.KVAdd(a, key, delta)
}

// KVCompareAndSet sets a value if the key has that version.
func (a *Attempt) KVCompareAndSet(key []byte, version int64, value []byte) Errno {
	if far := a.far(); far != nil {
		return far.KVCompareAndSet(key, version, value)
	}
	kv, e := a.keys(key)
	switch {
	case e != OK:
		return e
	case len(value) > jobhost.MaxValueBytes:
		return ErrLimit
	case version < 0:
		return ErrInvalid
	}
	return kv.KVCompareAndSet(a, key, version, value)
}
