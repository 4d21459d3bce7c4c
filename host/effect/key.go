package effect

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Keys that were only read are remembered up to these bounds, so that a value
// stays what it was for the attempt, and its version belongs to it.
const (
	cleanKeys  = 512
	cleanBytes = 1 << 20
)

// key is what an attempt knows of a key, and wants of it.
type key struct {
	read bool
	was  record.KVEntry // as it was read; version 0 = it wasn't there

	change  change
	checked bool // the change depends on the version that was read
	value   []byte
	expires record.Millis
	delta   int64
}

// change is what an attempt wants of a key.
type change uint8

const (
	unchanged change = iota
	set              // to value
	add              // delta, to whatever is there then
	remove
)

// asked is the change as the store knows it.
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

// weight is about what the key holds in memory.
func (k *key) weight(name string) int { return len(name) + len(k.was.Value) + len(k.value) }

// look returns what is known of a key, which is nothing at first.
func (a *Attempt) look(name []byte) *key {
	k := a.keys[string(name)]
	if k == nil {
		k = &key{}
		a.keys[string(name)] = k
	}
	return k
}

// read returns a key as it is in the store, or was when it was first read.
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

// remember counts a key that was read, and forgets the others when they are too many.
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

// Get returns the value of a key as the attempt sees it, with the version that
// was read. Errors: not_found.
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

// now is the value as the attempt sees it.
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

// sum is what additions make of the value that was read.
func (k *key) sum(name []byte) (int64, error) { return addTo(name, k.value0(), k.delta) }

// value0 is the value that was read, nil without one.
func (k *key) value0() []byte {
	if k.was.Version != 0 && k.was.Value == nil {
		return []byte{}
	}
	return k.was.Value
}

// addTo adds to a number.
func addTo(name, value []byte, delta int64) (int64, error) {
	sum, ok := record.AddNumber(value, delta)
	if ok && sum > math.MinInt64+255 { // the numbers below stand for errors in the ABI
		return sum, nil
	}
	if _, number := record.AddNumber(value, 0); number {
		return 0, &jobhost.Error{Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("the sum of key %q has more than 64 bits", name)}
	}
	return 0, &jobhost.Error{Code: jobhost.CodeInvalid, Message: fmt.Sprintf("the value of key %q is not a whole number", name)}
}

// Set sets a key; ttl 0 = for good.
func (a *Attempt) Set(name, value []byte, ttl time.Duration) error {
	return a.put(name, a.look(name), value, a.cfg.Queue.Expiry(ttl), false)
}

// CompareAndSet sets a key if it has the version that the attempt was told; 0 =
// if it isn't there. Errors: conflict.
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

// put changes a key to a value.
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
