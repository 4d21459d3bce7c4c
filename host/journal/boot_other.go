//go:build !linux

package journal

// bootID is not available on this system. What a power failure left in the file is
// therefore treated like the result of a crash.
func bootID() string { return "unknown" }
