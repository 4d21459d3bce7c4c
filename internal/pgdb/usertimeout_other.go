//go:build !linux

package pgdb

import "syscall"

func limitUnacknowledged(string, string, syscall.RawConn) error { return nil }
