//go:build !linux

package link

import "os"

// widen does nothing: elsewhere the size of pipes is fixed.
func widen(*os.File) {}
