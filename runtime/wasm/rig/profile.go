package rig

import (
	"slices"

	"github.com/jobhost/jobhost/runtime/module"
)

// Profile is a characterization of programs.
type Profile struct {
	Name string
	// Types are the types of values in them.
	Types []byte
	// Kept are the types of values that loops produce at the beginning of each function and
	// that are used at its end, so that they occupy registers in between.
	Kept []byte
	// Compare builds conditions from comparisons of the results of i32.and and i64.and.
	Compare bool
	// Functions is the maximum number of functions of a program, Room the
	// approximate number of instructions in each.
	Functions, Room int
}

// Profiles returns those that once found something, and a general one.
func Profiles() []Profile {
	integers := []byte{module.I32, module.I64}
	floats := []byte{module.I32, module.I64, module.F32, module.F64}
	vectors := slices.Concat(floats, []byte{module.V128})
	references := []byte{module.FuncRef, module.ExternRef}
	all := slices.Concat(vectors, references)
	return []Profile{
		{Name: "integers", Types: slices.Concat(integers, references), Functions: 5, Room: 90},
		{Name: "all", Types: all, Functions: 4, Room: 90},
		{Name: "compare", Types: integers, Compare: true, Functions: 3, Room: 70},
		{Name: "press-int", Types: integers, Kept: integers, Functions: 2, Room: 70},
		{Name: "press-float", Types: floats, Kept: []byte{module.F32, module.F64}, Functions: 2, Room: 70},
		{Name: "press-simd", Types: vectors, Kept: []byte{module.V128}, Functions: 2, Room: 70},
		{Name: "large", Types: all, Functions: 25, Room: 500},
	}
}

func (p *Profile) has(t byte) bool { return slices.Contains(p.Types, t) }
