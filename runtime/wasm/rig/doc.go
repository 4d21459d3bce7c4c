// Package rig looks for modules that wazero's compiler, or the rewrite, gets
// wrong. It is used by tests only.
//
// The oracle is wazero's interpreter, which shares neither the compiler's backend
// nor our rewrite. Each module runs in three [Form]s: interpreted, compiled
// unchanged, and rewritten and compiled, which is what a host does. If the last
// differs, it is a fault of ours, or one of the compiler that the rewrite should
// have avoided; if only the second differs, it is a fault of the compiler that the
// rewrite avoids.
//
// The modules come from the WebAssembly test suite, from one small function per
// instruction, from a generator of whole programs, and from mutations of those.
// Because all three forms depend on the decoder of package module, it is also
// compared with that of the WebAssembly Binary Toolkit.
//
// TestMutants looks for what must never happen with any module: it passes
// damaged modules of all these kinds, and the example workers, to the whole
// engine, which has to reject or contain them.
//
// Programs are functions of a seed, so a difference can be reproduced and
// reduced; see [Generate] and [Reduce].
package rig
