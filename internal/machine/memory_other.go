//go:build !linux

package machine

import "math"

// Memory returns [math.MaxInt64]: how much memory the process may use is unknown
// here.
func Memory() int64 { return math.MaxInt64 }
