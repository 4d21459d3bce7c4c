//go:build !linux

package link

import "os"

// widen does nothing: elsewhere pipes have the size that they have.
func widen(*os.File) {}
