package hostcall

import (
	"time"

	"github.com/jobhost/jobhost"
)

// KV is an optional ability of [Services]: keys and values of the attempt's
// worker. An attempt sees its own changes at once; others see them when the
// attempt has succeeded, and never if it fails. A value that the attempt has
// read stays the same for as long as the attempt remembers it, which it does
// for the last few hundred keys.
//
// It is called by the goroutine that runs the guest. Keys and values that the
// caller passes remain its own, to be changed after the call; values that it
// gets must not be changed.
type KV interface {
	// KVGet returns the value of a key with the version that was read, or
	// [ErrNotFound]. The attempt's own changes don't affect the version.
	KVGet(at *Attempt, key []byte) (value []byte, version int64, e Errno)
	// KVSet sets a value; ttl 0 = no expiry. It returns [ErrLimit] when the
	// worker's keys and values together would exceed their quota, or the
	// attempt changes too much, and [ErrInvalid] for an invalid key.
	KVSet(at *Attempt, key, value []byte, ttl time.Duration) Errno
	// KVDelete removes a key; a missing key is not an error.
	KVDelete(at *Attempt, key []byte) Errno
	// KVAdd adds to a value that is a decimal integer, 0 if there is none, and
	// returns the sum as the attempt sees it. Additions of several attempts add
	// up, in whichever order they succeed. [ErrInvalid] for a value that is not a
	// number, [ErrLimit] for a sum out of range.
	KVAdd(at *Attempt, key []byte, delta int64) (int64, Errno)
	// KVCompareAndSet sets a value if the key has that version, 0 = there is no
	// such key; otherwise it returns [ErrConflict]. If the version has changed
	// by the time the attempt has succeeded, the attempt fails with
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

// keys returns the KV if key is a valid key.
func (a *Attempt) keys(key []byte) (KV, Errno) {
	kv, _ := a.Services.(KV)
	switch {
	case kv == nil:
		return nil, ErrDenied
	case len(key) > jobhost.MaxKeyBytes: // before it is copied: a guest may pass all of its memory
		return nil, ErrInvalid
	case jobhost.CheckKey(string(key)) != nil:
		return nil, ErrInvalid
	}
	return kv, OK
}

// KVGet returns the value of a key: see [KV]. All calls about keys return
// [ErrDenied] where there are none, and [ErrInvalid] for a key that
// [jobhost.CheckKey] rejects.
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

// KVSet sets a value for ttl milliseconds; 0 = no expiry. A value over
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
