//go:build !linux

package machine

import "math"

// Memory would return how much memory there is for the process: here it can't be
// found out.
func Memory() int64 { return math.MaxInt64 }
