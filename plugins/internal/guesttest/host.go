package guesttest

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Attempt is what a guest is given, and what it did with it.
type Attempt struct {
	Input []byte
	Info  map[string]string
	// LogLevel is the lowest level that the host says it keeps.
	LogLevel int32
	// Left is the answer of remaining.
	Left int64
	// Errno is the answer to output, emit, metric, observe and state_set if it isn't 0.
	Errno int32
	// HTTP answers requests; nil = denied.
	HTTP func(request string) Reply
	// Ends is what is told of the ends of jobs, by their numbers; others don't end.
	Ends map[int]string
	// Streams are what watches tell, by "TASK TAG", and what a fiber is sent, by
	// "recv"; others are denied.
	Streams map[string]Stream
	// States are the answers of state_get, by "TASK TAG", each from its time on;
	// others are denied.
	States map[string][]Reply
	// Stopped = whatever waits is told to stop.
	Stopped bool

	Output   []byte
	Kind     int32 // of the failure; 0 = none
	Failure  string
	Emitted  []string
	Logs     []string          // "LEVEL TEXT"
	Metrics  []string          // "KIND NAME", by id
	Observed []string          // "ID VALUE"
	Progress []string          // "DONE/TOTAL"
	Keys     map[string]string // of the worker; nil = denied
	Jobs     []string          // "WHEN TEXT", or "deferred"
	Sets     []string          // "TAG STATUS MESSAGE PAYLOAD"
	Ops      Ops
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
	f64 = api.ValueTypeF64
)

// hostCall answers a call of the guest.
type hostCall func(at *Attempt, m api.Memory, s []uint64)

// defineHost defines the module jobhost1 with the signatures of docs/abi.md.
func (g *Guest) defineHost(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder("jobhost1")
	define := func(name string, params, results []api.ValueType, call hostCall) {
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(
			func(_ context.Context, m api.Module, s []uint64) { call(g.Attempt, m.Memory(), s) },
		), params, results).Export(name)
	}
	type types = []api.ValueType
	define("input", types{i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		s[0] = fill(m, s[0], s[1], string(at.Input))
	})
	define("output", types{i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		at.Output = append(at.Output, text(m, s[0], s[1])...)
		s[0] = api.EncodeI32(at.Errno)
	})
	define("fail", types{i32, i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		at.Kind, at.Failure = int32(s[0]), text(m, s[1], s[2])
		s[0] = 0
	})
	define("info", types{i32, i32, i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		value, ok := at.Info[text(m, s[0], s[1])]
		if s[0] = fill(m, s[2], s[3], value); !ok {
			s[0] = api.EncodeI32(-1)
		}
	})
	define("emit", types{i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		at.Emitted = append(at.Emitted, text(m, s[0], s[1]))
		s[0] = api.EncodeI32(at.Errno)
	})
	define("log", types{i32, i32, i32}, nil, func(at *Attempt, m api.Memory, s []uint64) {
		at.Logs = append(at.Logs, fmt.Sprint(int32(s[0]), " ", text(m, s[1], s[2])))
	})
	define("log_level", nil, types{i32}, func(at *Attempt, _ api.Memory, s []uint64) {
		s[0] = api.EncodeI32(at.LogLevel)
	})
	define("metric", types{i32, i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		at.Metrics = append(at.Metrics, fmt.Sprint(int32(s[0]), " ", text(m, s[1], s[2])))
		if s[0] = uint64(len(at.Metrics) - 1); at.Errno != 0 {
			s[0] = api.EncodeI32(at.Errno)
		}
	})
	define("observe", types{i32, f64}, types{i32}, func(at *Attempt, _ api.Memory, s []uint64) {
		at.Observed = append(at.Observed, fmt.Sprint(int32(s[0]), " ", api.DecodeF64(s[1])))
		s[0] = api.EncodeI32(at.Errno)
	})
	define("progress", types{i64, i64}, nil, func(at *Attempt, _ api.Memory, s []uint64) {
		at.Progress = append(at.Progress, fmt.Sprintf("%d/%d", int64(s[0]), int64(s[1])))
	})
	define("remaining", nil, types{i64}, func(at *Attempt, _ api.Memory, s []uint64) {
		s[0] = api.EncodeI64(at.Left)
	})
	defineEffects(define)
	defineOps(define)
	defineStates(define)
	_, err := b.Instantiate(ctx)
	return err
}

// text copies what a pointer and a length stand for. A place outside of the
// memory is a trap, as it is with the real host.
func text(m api.Memory, ptr, n uint64) string {
	view, ok := m.Read(uint32(ptr), uint32(n))
	if !ok {
		panic(fmt.Errorf("%d bytes at %d are outside of the memory", n, ptr))
	}
	return string(view)
}

// fill answers by the fill-or-size rule.
func fill(m api.Memory, buf, room uint64, value string) uint64 {
	if uint64(len(value)) <= uint64(uint32(room)) && !m.WriteString(uint32(buf), value) {
		panic(fmt.Errorf("%d bytes at %d are outside of the memory", len(value), buf))
	}
	return uint64(len(value))
}
