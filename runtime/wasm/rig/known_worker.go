package rig

import (
	"context"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/module"
)

// answersAt is where a worker stores its results, after the data of sketches,
// answerBytes the room for each.
const (
	answersAt   = 1024
	answerBytes = 16
)

// KnownWorker returns a worker without imports that combines all faults of
// [KnownFaults]: it returns what each sketch returns for zero arguments, and
// for others.
func KnownWorker() ([]byte, error) {
	faults, err := KnownFaults()
	if err != nil {
		return nil, err
	}
	worker := Sketch{Memory: true, Data: floats()}
	run := Routine{Name: "jh_run", Params: []byte{module.I32}, Results: []byte{module.I64}}
	at := answersAt
	for _, fault := range faults {
		for _, sketch := range fault.Sketches {
			f := sketch.Functions[0]
			for _, argument := range []func(byte) []byte{nothing, some} {
				run.add(In(module.I32Const, uint64(at)))
				for _, kind := range f.Params {
					run.add(argument(kind))
				}
				run.add(In(module.Call, uint64(len(worker.Functions))), stored(f.Results[0]))
				at += answerBytes
			}
			worker.Functions = append(worker.Functions, f)
		}
	}
	run.add(In(module.I64Const, answersAt<<32|uint64(at-answersAt)))
	worker.Functions = append(worker.Functions, run)
	return worker.Bytes()
}

// stored stores a result at the address below it on the stack.
func stored(kind byte) []byte {
	stores := map[byte]uint32{module.I32: i32Store, module.I64: 0x37, module.F32: 0x38, module.F64: 0x39, module.V128: 0xfd0b}
	return In(stores[kind])
}

// nothing returns a zero constant.
func nothing(kind byte) []byte {
	switch kind {
	case module.I32:
		return In(module.I32Const)
	case module.I64:
		return In(module.I64Const)
	case module.F32:
		return In(f32Const, 0)
	case module.F64:
		return In(f64Const, 0)
	}
	v := module.Instruction{Op: vectorConst, Bytes: make([]byte, 16)}
	return v.Append(nil)
}

// Answer runs a worker without imports in a form, and returns its result.
func Answer(ctx context.Context, f Form, worker []byte) ([]byte, error) {
	r := NewRuntime(ctx, f)
	defer func() { _ = r.Close(ctx) }()
	instance, err := Instantiate(ctx, r, f, worker, "")
	if err != nil {
		return nil, err
	}
	results, err := instance.ExportedFunction("jh_run").Call(ctx, 0)
	if err != nil {
		return nil, err
	}
	place, size := api.DecodeU32(results[0]>>32), api.DecodeU32(results[0])
	b, ok := instance.Memory().Read(place, size)
	if !ok {
		return nil, fmt.Errorf("it returned %d bytes at %d", size, place)
	}
	return slices.Clone(b), nil
}
