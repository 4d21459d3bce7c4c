package effect

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Limits for remembering keys that were only read. Remembering keeps a value stable
// for the attempt, and consistent with its version.
const (
	cleanKeys  = 512
	cleanBytes = 1 << 20
)

// key is what an attempt knows about a key and wants to change.
type key struct {
	read bool
	was  record.KVEntry // as it was read; version 0 = it didn't exist

	change  change
	checked bool // the change requires the version that was read
	value   []byte
	expires record.Millis
	delta   int64
}

// change is the kind of change to a key.
type change uint8

const (
	unchanged change = iota
	set              // to value
	add              // delta, to the value at that time
	remove
)

// asked is the change in the store's terms.
func (k *key) asked(name string) record.KVChange {
	c := record.KVChange{Key: name, Checked: k.checked, Version: k.was.Version}
	switch k.change {
	case set:
		c.Value, c.Expires = k.value, k.expires
	case add:
		c.Kind, c.Delta = record.KVAdd, k.delta
	default:
		c.Kind = record.KVDelete
	}
	return c
}

// weight is the approximate memory the key occupies.
func (k *key) weight(name string) int { return len(name) + len(k.was.Value) + len(k.value) }

// look returns what is known about a key, initially nothing.
func (a *Attempt) look(name []byte) *key {
	k := a.keys[string(name)]
	if k == nil {
		k = &key{}
		a.keys[string(name)] = k
	}
	return k
}

// read returns a key as it was when it was first read, which may be now.
func (a *Attempt) read(name []byte) (*key, error) {
	k := a.look(name)
	if k.read {
		return k, nil
	}
	ctx, done := a.context()
	defer done()
	entry, err := a.cfg.Queue.Key(ctx, a.cfg.Lease.Job.Worker, string(name))
	if err != nil && jobhost.CodeOf(err) != jobhost.CodeNotFound {
		if k.change == unchanged {
			delete(a.keys, string(name))
		}
		return nil, fmt.Errorf("read key: %w", err)
	}
	k.read, k.was = true, entry
	if k.change == unchanged {
		a.remember(name, k)
	}
	return k, nil
}

// remember counts a key that was read, and forgets the other ones if there are too
// many.
func (a *Attempt) remember(name []byte, k *key) {
	a.clean.keys++
	a.clean.bytes += k.weight(string(name))
	if a.clean.keys <= cleanKeys && a.clean.bytes <= cleanBytes {
		return
	}
	for other, o := range a.keys {
		if o.change == unchanged && o != k {
			delete(a.keys, other)
		}
	}
	a.clean = bytesAndKeys{keys: 1, bytes: k.weight(string(name))}
}

// Get returns the value of a key as the attempt sees it, and the version that was
// read. Errors: not_found.
func (a *Attempt) Get(name []byte) (value []byte, version int64, err error) {
	k, err := a.read(name)
	if err != nil {
		return nil, 0, err
	}
	value, there, err := k.now(name)
	if err == nil && !there {
		err = record.ErrNoKey(a.cfg.Lease.Job.Worker, string(name))
	}
	return value, k.was.Version, err
}

// now returns the value as the attempt sees it.
func (k *key) now(name []byte) (value []byte, there bool, err error) {
	switch k.change {
	case set:
		return k.value, true, nil
	case add:
		sum, err := k.sum(name)
		return strconv.AppendInt(nil, sum, 10), true, err
	case remove:
		return nil, false, nil
	}
	return k.was.Value, k.was.Version != 0, nil
}

// sum returns the value that was read plus the additions.
func (k *key) sum(name []byte) (int64, error) { return addTo(name, k.value0(), k.delta) }

// value0 returns the value that was read; nil = the key didn't exist.
func (k *key) value0() []byte {
	if k.was.Version != 0 && k.was.Value == nil {
		return []byte{}
	}
	return k.was.Value
}

// addTo adds delta to a decimal number.
func addTo(name, value []byte, delta int64) (int64, error) {
	sum, ok := record.AddNumber(value, delta)
	if ok && sum > math.MinInt64+255 { // lower values stand for errors in the ABI
		return sum, nil
	}
	if _, number := record.AddNumber(value, 0); number {
		return 0, &jobhost.Error{Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("the sum of key %q has more than 64 bits", name)}
	}
	return 0, &jobhost.Error{Code: jobhost.CodeInvalid, Message: fmt.Sprintf("the value of key %q is not a whole number", name)}
}

// Set sets a key; ttl 0 = it doesn't expire.
func (a *Attempt) Set(name, value []byte, ttl time.Duration) error {
	return a.put(name, a.look(name), value, a.cfg.Queue.Expiry(ttl), false)
}

// CompareAndSet sets a key if its version is the given one; 0 = if it doesn't exist.
// Errors: conflict.
func (a *Attempt) CompareAndSet(name []byte, version int64, value []byte) error {
	k, err := a.read(name)
	if err != nil {
		return err
	}
	if k.was.Version != version {
		return record.ErrVersion(string(name))
	}
	return a.put(name, k, value, 0, true)
}

// put sets a key to a value.
func (a *Attempt) put(name []byte, k *key, value []byte, expires record.Millis, checked bool) error {
	next := *k
	next.change, next.checked, next.expires, next.delta = set, k.checked || checked, expires, 0
	next.value = append([]byte{}, value...)
	return a.keep(name, k, &next)
}

// Delete removes a key.
func (a *Attempt) Delete(name []byte) error {
	k := a.look(name)
	next := *k
	next.change, next.value, next.expires, next.delta = remove, nil, 0, 0
	return a.keep(name, k, &next)
}

// Add adds to a number and returns the sum as the attempt sees it. Errors:
// invalid, too_large.
func (a *Attempt) Add(name []byte, delta int64) (int64, error) {
	k := a.look(name)
	if k.change == set || k.change == remove {
		sum, err := addTo(name, k.value, delta)
		if err != nil {
			return 0, err
		}
		return sum, a.put(name, k, strconv.AppendInt(nil, sum, 10), k.expires, false)
	}
	k, err := a.read(name)
	if err != nil {
		return 0, err
	}
	next := *k
	next.change, next.delta = add, k.delta+delta
	if (next.delta > k.delta) != (delta > 0) {
		return 0, &jobhost.Error{Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("the sum of key %q has more than 64 bits", name)}
	}
	sum, err := next.sum(name)
	if err != nil {
		return 0, err
	}
	return sum, a.keep(name, k, &next)
}
