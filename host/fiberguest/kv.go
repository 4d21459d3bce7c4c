package fiberguest

import (
	"errors"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// KVGet implements [hostcall.KV].
func (g *guest) KVGet(at *hostcall.Attempt, key []byte) ([]byte, int64, hostcall.Errno) {
	ctx, done := bounded()
	defer done()
	e, err := g.cfg.Queue.Key(ctx, at.Worker, string(key))
	return e.Value, e.Version, hostcall.ErrnoOf(err)
}

// KVSet implements [hostcall.KV].
func (g *guest) KVSet(at *hostcall.Attempt, key, value []byte, ttl time.Duration) hostcall.Errno {
	return g.change(at, record.KVChange{Key: string(key), Value: append([]byte{}, value...), Expires: g.cfg.Queue.Expiry(ttl)})
}

// KVDelete implements [hostcall.KV].
func (g *guest) KVDelete(at *hostcall.Attempt, key []byte) hostcall.Errno {
	return g.change(at, record.KVChange{Key: string(key), Kind: record.KVDelete})
}

// KVCompareAndSet implements [hostcall.KV].
func (g *guest) KVCompareAndSet(at *hostcall.Attempt, key []byte, version int64, value []byte) hostcall.Errno {
	return g.change(at, record.KVChange{Key: string(key), Value: append([]byte{}, value...), Checked: true, Version: version})
}

// KVAdd implements [hostcall.KV]. The sum is that at the time of the change.
func (g *guest) KVAdd(at *hostcall.Attempt, key []byte, delta int64) (int64, hostcall.Errno) {
	for {
		value, version, e := g.KVGet(at, key)
		if e != hostcall.OK && e != hostcall.ErrNotFound {
			return 0, e
		}
		sum, ok := record.AddNumber(value, delta)
		if !ok {
			return 0, hostcall.ErrInvalid
		}
		e = g.change(at, record.KVChange{Key: string(key), Kind: record.KVAdd, Delta: delta, Checked: true, Version: version})
		if e == hostcall.ErrConflict && !at.Over(g.scope.Context()) {
			continue // another change came first
		}
		if e != hostcall.OK {
			return 0, e
		}
		return sum, hostcall.OK
	}
}

// change makes a change of a key durable.
func (g *guest) change(at *hostcall.Attempt, c record.KVChange) hostcall.Errno {
	ctx, done := bounded()
	defer done()
	err := g.cfg.Queue.ChangeKey(ctx, at.Worker, g.ref.KVQuota, c)
	if err != nil && !errors.Is(err, &jobhost.Error{Code: jobhost.CodeConflict}) {
		at.Log(hostcall.LevelWarn, []byte("kv: "+strconv.Quote(c.Key)+": "+err.Error()))
	}
	return hostcall.ErrnoOf(err)
}
