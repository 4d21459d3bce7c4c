//go:build !linux

package journal

// bootID can't be told here. What a power loss has left of the file then counts as
// what a crash has left.
func bootID() string { return "unknown" }
