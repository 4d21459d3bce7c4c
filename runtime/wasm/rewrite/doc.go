// Package rewrite prepares WebAssembly modules so that they can be preempted,
// counted, stopped and reset.
package rewrite
