package confine

import "golang.org/x/sys/unix"

const (
	architecture = unix.AUDIT_ARCH_AARCH64
	foreignCalls = 0 // there are none
)

// The calls that only amd64 has.
var plainCallsHere, programCallsHere, adminCallsHere []uint32
