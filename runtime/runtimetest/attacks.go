package runtimetest

import "strings"

// Stuck is a job that doesn't end on its own.
type Stuck struct {
	Name   string
	Module []byte
	Entry  string
	Input  string
	Memory int64 // its limit; 0 = the default
}

// Faults are jobs that touch a new page of memory with nearly each instruction.
// The kernel must provide each page, so little code takes a long time.
func Faults() []Stuck {
	var jobs []Stuck
	for name, pages := range map[string]int{"64 MiB": 1024, "1 GiB": 16384, "4 GiB": 65535} {
		row, rowOfLoads := "", ""
		for n := range 50 {
			row += Counter + Store(4096*(n+1))
			rowOfLoads += Counter + "\x28\x02" + Unsigned(4096*(n+1)) + "\x1a"
		}
		next := Bump(50 * 4096)
		// Wraps around when the next row would be out of bounds.
		wrap := Counter + Number(int32(pages<<16-52*4096)) + "\x4b\x04\x40" + Number(0) + Number(0) + "\x36\x02\x00\x0b"
		limit := int64(pages) << 16
		jobs = append(jobs,
			Stuck{Name: "writes to new pages of " + name, Memory: limit, Module: Handmade(pages, false, Loop+row+next+wrap+Again)},
			Stuck{Name: "reads of new pages of " + name, Memory: limit, Module: Handmade(pages, false, Loop+rowOfLoads+next+wrap+Again)},
			Stuck{Name: "fills of new pages of " + name, Memory: limit, Module: Handmade(pages, false,
				Loop+strings.Repeat(Counter+Number(1)+Number(64)+"\xfc\x0b\x00"+Bump(4096), 30)+wrap+Again)},
		)
	}
	const pages = 16384
	// A chain of functions that call each other, with much to do on the way back.
	var chain []string
	for f := 1; f <= 3000; f++ {
		rest := ""
		for n := range 80 {
			rest += Number(int32((f*80+n)%(pages*16)*4096)) + Store(0)
		}
		chain = append(chain, Call(f+1)+rest)
	}
	// The memory counts the depth of the recursion, which stays within the stack.
	deep := Bump(4096) + Counter + Number(60_000*4096) + "\x49\x04\x40" + Call(1) + "\x0b" + Bump(-4096) + Counter + Store(4096)
	return append(jobs,
		Stuck{Name: "a chain of functions that write on the way back", Memory: pages << 16, Module: Handmade(pages, false, append(append([]string{Loop + Call(1) + Again}, chain...), "")...)},
		Stuck{Name: "a recursion that writes on the way back", Memory: pages << 16, Module: Handmade(pages, false, Loop+Call(1)+Again, deep)},
	)
}

// WithNames appends a name section with some subsections to a module; see [NamePart].
func WithNames(wasm []byte, parts ...string) []byte {
	return append(wasm, "\x00"+Sized("\x04name"+strings.Join(parts, ""))...)
}

// NamePart is a subsection of a name section.
func NamePart(id byte, content string) string { return string(rune(id)) + Sized(content) }

// NameBombs are workers that trap 5,000 calls deep, with a module or function
// names of a mebibyte. An engine that combines the names of module and function
// for each function needs gigabytes.
func NameBombs() map[string][]byte {
	const functions, long = 5000, 1 << 20
	bodies := make([]string, functions)
	for f := range bodies {
		bodies[f] = Call(f + 1)
	}
	bodies[functions-1] = "\x00" // traps
	bombs := map[string][]byte{}
	for name, names := range map[string]string{
		"of the module":  NamePart(0, Sized(strings.Repeat("m", long))),
		"of a function":  NamePart(1, "\x01\x00"+Sized(strings.Repeat("f", long))),
		"of all of them": NamePart(0, Sized(strings.Repeat("m", long))) + NamePart(1, "\x01\x00"+Sized(strings.Repeat("é", long))),
	} {
		bombs[name] = WithNames(Handmade(1, false, bodies...), names)
	}
	return bombs
}

// BombBytes is how much memory a trap of [NameBombs] may take: the usual
// amount, without a name for each function.
const BombBytes = 64 << 20
