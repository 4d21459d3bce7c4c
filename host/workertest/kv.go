package workertest

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// key is a key of the worker: as others see it, and as the attempt has changed it.
type key struct {
	version int64  // as others see it; 0 = it doesn't exist for them
	value   []byte // as the attempt sees it; nil = it doesn't exist
}

// fillKeys sets the initial keys of the case, each with its own version.
func (b *box) fillKeys() {
	b.keys = map[string]*key{}
	for _, name := range slices.Sorted(maps.Keys(b.test.KV)) {
		b.version++
		b.keys[name] = &key{version: b.version, value: append([]byte{}, b.test.KV[name]...)}
	}
}

// kept returns the keys after the attempt.
func (b *box) kept(succeeded bool) map[string]string {
	if !succeeded {
		return b.test.KV
	}
	kept := map[string]string{}
	for name, k := range b.keys {
		if k.value != nil {
			kept[name] = string(k.value)
		}
	}
	return kept
}

func (b *box) key(name []byte) *key {
	k := b.keys[string(name)]
	if k == nil {
		k = &key{}
		b.keys[string(name)] = k
	}
	return k
}

// KVGet implements [hostcall.KV].
func (b *box) KVGet(_ *hostcall.Attempt, name []byte) ([]byte, int64, hostcall.Errno) {
	k := b.keys[string(name)]
	switch {
	case k == nil:
		return nil, 0, hostcall.ErrNotFound
	case k.value == nil:
		return nil, k.version, hostcall.ErrNotFound
	}
	return k.value, k.version, hostcall.OK
}

// KVSet implements [hostcall.KV].
func (b *box) KVSet(_ *hostcall.Attempt, name, value []byte, _ time.Duration) hostcall.Errno {
	b.key(name).value = append([]byte{}, value...)
	return hostcall.OK
}

// KVDelete implements [hostcall.KV].
func (b *box) KVDelete(_ *hostcall.Attempt, name []byte) hostcall.Errno {
	if k := b.keys[string(name)]; k != nil {
		k.value = nil
	}
	return hostcall.OK
}

// KVAdd implements [hostcall.KV].
func (b *box) KVAdd(_ *hostcall.Attempt, name []byte, delta int64) (int64, hostcall.Errno) {
	var n int64
	k := b.key(name)
	if k.value != nil {
		var err error
		if n, err = strconv.ParseInt(string(bytes.TrimSpace(k.value)), 10, 64); err != nil {
			return 0, hostcall.ErrInvalid
		}
	}
	sum := n + delta
	// The lowest numbers stand for errors in the ABI.
	if (sum > n) != (delta > 0) && delta != 0 || sum <= math.MinInt64+255 {
		return 0, hostcall.ErrLimit
	}
	k.value = strconv.AppendInt(nil, sum, 10)
	return sum, hostcall.OK
}

// KVCompareAndSet implements [hostcall.KV].
func (b *box) KVCompareAndSet(_ *hostcall.Attempt, name []byte, version int64, value []byte) hostcall.Errno {
	k := b.key(name)
	if k.version != version {
		return hostcall.ErrConflict
	}
	k.value = append([]byte{}, value...)
	return hostcall.OK
}
