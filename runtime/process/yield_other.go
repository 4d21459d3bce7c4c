//go:build !linux

package process

import "runtime"

// yieldThread lets other goroutines run.
func yieldThread() { runtime.Gosched() }
