// Package rig looks for modules that wazero's compiler, or the rewrite, gets
// wrong. It is used by tests only.
//
// The oracle is wazero's interpreter, which shares neither the compiler's
// backend nor our rewrite. Each module runs in three [Form]s: interpreted,
// compiled as it is, and rewritten and compiled, which is what a host does.
// What the last does differently is a fault of ours, or one of the compiler's
// that the rewrite should have avoided; what only the second does differently is a
// fault of the compiler that the rewrite avoids.
//
// The modules come from the WebAssembly test suite, from one small function for
// each instruction, from a generator of whole programs, and from mutations of
// those. Because the decoder of package module stands behind all three forms,
// it is compared with the one of the WebAssembly Binary Toolkit too.
//
// What must never happen whatever a module is like is looked for by TestMutants:
// it gives damaged modules of all these kinds, and the example workers, to the
// whole engine, which has to refuse or contain them.
//
// Programs are functions of a seed, so a difference can be found again and
// reduced; see [Generate] and [Reduce].
package rig
