//go:build !linux

package process

import "runtime"

// yieldThread lets others run.
func yieldThread() { runtime.Gosched() }
