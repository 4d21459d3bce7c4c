//go:build !linux

package sqlitedb

import "os"

func dataSync(f *os.File) error { return f.Sync() }
