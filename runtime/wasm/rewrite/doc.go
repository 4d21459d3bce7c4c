// Package rewrite changes WebAssembly modules so that what runs in them can be
// preempted, counted, stopped and reset.
//
// wazero runs guests as native code, which the Go scheduler cannot interrupt: a
// guest that computes keeps its thread, and the whole process waits for it at
// the next garbage collection. A rewritten guest counts down a tick in a global
// as it runs, and when that is used up it yields: it leaves native code for Go
// and comes back, traps when it was told to stop or its fuel is used up, and
// gets a new tick. Fuel is the sum of all ticks, so the same job costs the same
// fuel each time, on each machine.
//
// # Where a guest ticks
//
// Each loop ticks at its header. A function is free when it is small together
// with all functions that it calls; such functions have no tick of their own.
// Other functions tick when they are entered, if what they do outside of loops
// is large, or else before the first call of a function that is not free: the
// leaves of a recursion cost nothing. Within a recursion a function also ticks
// after each call that more than a few instructions may follow, because on the
// way back from a deep recursion nothing else does. Each tick is weighted by
// the code that it stands for, calls of free functions included.
//
// Bulk operations on memory and tables that are larger than 4 KiB, or 4096
// entries, are counted by their size. Copies and fills of memory are done in
// pieces of 1 MiB.
//
// # How long a guest can run without a yield
//
// A unit of fuel stands for at most 256 bytes of code in a loop or function,
// and as much again around that loop or on the way to a function's first tick.
// With the interval of 16,384 units that is 8 MiB of code, of which each byte
// is run once: milliseconds of arithmetic, and some tens of them if each
// instruction misses all caches. To this comes what is on the way back from
// calls: at most 32 bytes of code for each activation of a recursion, and
// once the rest of each function that is on the stack otherwise, so at most the
// code of the module. wazero's stack ends at about 100 MB, which is two or three
// million activations of the smallest kind. Table operations are not divided:
// tables should have at most some 100,000 entries.
//
// # What is added
//
// Everything is added behind what is there, so that no index changes: three
// types, four functions, four globals, exports with the reserved [Prefix], and a
// memory of no pages if there was none. Data segments and the start function
// are handed to the host instead. Custom sections are left out, since their
// offsets would be wrong, but for the names of functions.
package rewrite
