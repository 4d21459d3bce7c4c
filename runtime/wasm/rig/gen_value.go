package rig

import (
	"encoding/binary"
	"math"

	"github.com/jobhost/jobhost/runtime/module"
)

// Constants are edge cases more often than not.

func (g *generator) int32() int32 {
	edges := []int32{0, 0, 1, -1, 2, 7, 8, 31, 32, 63, 127, -128, 255, 256, 32767, 65535, math.MaxInt32, math.MinInt32}
	if g.chance(3) {
		return int32(g.Uint32())
	}
	return edges[g.IntN(len(edges))]
}

func (g *generator) int64() uint64 {
	switch g.IntN(4) {
	case 0:
		return g.Uint64()
	case 1:
		edges := []uint64{1 << 31, 1 << 32, 1<<32 - 1, 1 << 63, 1<<63 - 1, 1 << 52, 1<<53 + 1}
		return edges[g.IntN(len(edges))]
	}
	return uint64(int64(g.int32()))
}

func (g *generator) float32() uint32 {
	switch g.IntN(4) {
	case 0:
		edges := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat32, math.SmallestNonzeroFloat32, 0.5, -1.5, 2147483648, 4294967296}
		return math.Float32bits(float32(edges[g.IntN(len(edges))]))
	case 1:
		return math.Float32bits(float32(g.NormFloat64()))
	}
	return math.Float32bits(float32(g.IntN(200)-100) / 2)
}

func (g *generator) float64() uint64 {
	switch g.IntN(4) {
	case 0:
		edges := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.5, -1.5, 9223372036854775808, 18446744073709551616}
		return math.Float64bits(edges[g.IntN(len(edges))])
	case 1:
		return math.Float64bits(g.NormFloat64())
	}
	return math.Float64bits(float64(g.IntN(200)-100) / 2)
}

// vector returns lanes of one kind, with small numbers or random bits.
func (g *generator) vector() []byte {
	b := make([]byte, 16)
	switch g.IntN(4) {
	case 0:
		for i := range 4 {
			binary.LittleEndian.PutUint32(b[4*i:], g.float32())
		}
	case 1:
		for i := range 2 {
			binary.LittleEndian.PutUint64(b[8*i:], g.float64())
		}
	case 2:
		for i := range 2 {
			binary.LittleEndian.PutUint64(b[8*i:], g.int64())
		}
	default:
		for i := range b {
			b[i] = byte(g.Uint32())
		}
	}
	return b
}

// constant pushes some value of a type.
func (g *generator) constant(t byte) {
	switch t {
	case module.I32:
		g.i32(g.int32())
	case module.I64:
		g.emit(module.Instruction{Op: module.I64Const, Immediate: g.int64()})
	case module.F32:
		g.emit(module.Instruction{Op: f32Const, Immediate: uint64(g.float32())})
	case module.F64:
		g.emit(module.Instruction{Op: f64Const, Immediate: g.float64()})
	case module.V128:
		g.emit(module.Instruction{Op: vectorConst, Bytes: g.vector()})
	case module.FuncRef:
		if f := g.IntN(2 * len(g.m.Functions)); f < len(g.m.Functions) {
			g.at(module.RefFunc, f)
			return
		}
		g.at(module.RefNull, int(t))
	default:
		g.at(module.RefNull, int(t))
	}
}

// zero pushes 0, or null.
func (g *generator) zero(t byte) {
	switch t {
	case module.I32:
		g.i32(0)
	case module.I64:
		g.emit(module.Instruction{Op: module.I64Const})
	case module.F32:
		g.emit(module.Instruction{Op: f32Const})
	case module.F64:
		g.emit(module.Instruction{Op: f64Const})
	case module.V128:
		g.emit(module.Instruction{Op: vectorConst, Bytes: make([]byte, 16)})
	default:
		g.at(module.RefNull, int(t))
	}
}
