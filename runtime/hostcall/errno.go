package hostcall

// Errno is the result of a host call that failed. The numbers are part of the
// native ABI: see docs/abi.md.
type Errno int32

// The errnos. OK is not an error.
const (
	OK          Errno = 0
	ErrNotFound Errno = -1
	ErrDenied   Errno = -2 // no grant
	ErrStopped  Errno = -3 // cancelled or past the deadline
	ErrLimit    Errno = -4 // a limit was reached
	ErrInvalid  Errno = -5 // an invalid argument
	ErrIO       Errno = -6
	ErrClosed   Errno = -7
	ErrConflict Errno = -8
)
