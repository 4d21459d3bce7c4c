// Package rewrite changes WebAssembly modules so that their code can be
// preempted, counted, stopped and reset.
//
// wazero runs guests as native code, which the Go scheduler cannot interrupt: a
// guest that computes keeps its thread, and the whole process waits for it at
// the next garbage collection. A rewritten guest counts down a tick in a global
// as it runs, and when that is used up it yields: it leaves native code for Go
// and comes back, traps if it was stopped or has used up its fuel, and gets a
// new tick. Fuel is the sum of all ticks, so the same job costs the same fuel
// each time, on each machine.
//
// # One reader
//
// None of the module's code is copied. What package module has read is typed by
// package typecheck and written again, instruction by instruction and in
// canonical form, so the compiler sees what was read here and nothing else. What
// wazero 1.12 miscompiles is written differently: see address.go, compare.go,
// lower.go and lower_vector.go.
//
// # Where a guest ticks
//
// Each loop ticks at its header. A function is free when it is small together
// with all functions that it calls; such functions have no tick of their own.
// Other functions tick on entry, if what they do outside loops is large, or
// otherwise before the first call of a function that is not free: the leaves of
// a recursion cost nothing. Within a recursion a function also ticks after each
// call that more than a few instructions may follow, because on the way back
// from a deep recursion nothing else does; and where calls are nested without a
// recursion, as soon as the code following them adds up to a lot. Each tick
// counts for the most expensive path through the code that it stands for,
// including calls of free functions, and for each memory access on it: the first
// access to a page makes the kernel provide it, which takes as long as thousands
// of instructions.
//
// Bulk operations on memory and tables that are larger than 4 KiB, or 512
// entries, are counted by their size. Copies and fills of memory are done in
// pieces of 1 MiB.
//
// # How long a guest can run without a yield
//
// A unit of fuel stands for at most 256 bytes of code in a loop or function and
// as much again around that loop or on the way to a function's first tick, or
// for one memory access. With the interval of 16,384 units that is 8 MiB of
// code, each byte of which is run once, or as many page faults: the former takes
// milliseconds, the latter 30 to 60 of them. Added to this is the code on the
// way back from calls: at most 32 bytes of code without accesses for each
// activation of a recursion, of which a stack holds some 600,000, and at most 1
// MiB of code and 2,048 accesses in all others that are on the stack. Table
// operations are not divided: tables should have at most some 100,000 entries.
//
// # What is added
//
// Everything is added after what is there, so that no index changes: three
// types, four functions, four globals and one for each function that code makes
// references to, exports with the reserved [Prefix], and a memory of no pages if
// there was none. Data segments and the start function are given to the host
// instead. Custom sections are left out, except for the names of functions,
// which are cut if they are long.
package rewrite
