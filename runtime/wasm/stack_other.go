//go:build !unix

package wasm

// mapStack returns memory for a stack.
func mapStack(size int) ([]byte, error) { return make([]byte, size), nil }

func unmapStack([]byte) error { return nil }

func releaseStack([]byte) {}
