package hostcall

import (
	"context"
	"log/slog"
)

// Far is an optional ability of [Services]: they run in another process, which has an attempt of its own. Calls
// that leave the sandbox are forwarded unchanged and checked, counted and answered there, so that nothing depends
// on the honesty of the sandbox's process. The methods are those of [Attempt] of the same names.
//
// [Services] and [Contents] are used as usual.
type Far interface {
	FarJob
	FarKV
	FarStates
	FarOps
}

// FarJob has the calls about the job itself.
type FarJob interface {
	// Info is called for keys with a group other than job that aren't in the attempt's Config.
	Info(key string) (string, Errno)
	Log(level slog.Level, msg []byte)
	Submit(text []byte, when SubmitTime) (int32, Errno)
}

// FarKV has the calls about keys and values. Keys and values are valid during the call.
type FarKV interface {
	KVGet(key []byte) (value []byte, version int64, e Errno)
	KVSet(key, value []byte, ttl int64) Errno
	KVDelete(key []byte) Errno
	KVAdd(key []byte, delta int64) (int64, Errno)
	KVCompareAndSet(key []byte, version int64, value []byte) Errno
}

// FarStates has the calls about reported states.
type FarStates interface {
	SetState(ctx context.Context, tag string, status int32, message, payload []byte) Errno
	State(ctx context.Context, task int32, tag string) ([]byte, Errno)
	WatchState(ctx context.Context, task int32, tag string) (int32, Errno)
}

// FarOps has the calls that start something that takes time, or wait for it.
type FarOps interface {
	Send(text []byte) (int32, Errno)
	Fetch(ctx context.Context, r *HTTPRequest) (*HTTPResponse, error)
	Defer(text []byte, entry string, args []byte) (int32, Errno)
	Timer(ms int64) (int32, Errno)
	Receive() (int32, Errno)
	Wait(ctx context.Context, numbers []int32, timeout int64) (int32, Errno)
	// Read with an empty buf returns how much of the message is left.
	Read(ctx context.Context, number int32, buf []byte) (int, Errno)
	Drop(number int32) Errno
}

// far returns the services that forward calls; nil = they are answered here.
func (a *Attempt) far() Far {
	far, _ := a.Services.(Far)
	return far
}
