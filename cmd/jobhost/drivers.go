package main

import (
	"log/slog"
	"path/filepath"

	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// This file is the one place that knows the concrete drivers.

// openStore opens the store that a manifest names. Both of its drivers are
// SQLite: "mem" has no folder, and so no file.
func openStore(h *manifest.Host, observer sqlitedb.Observer, logger *slog.Logger) (*sqlitequeue.Store, error) {
	return sqlitequeue.Open(sqlitequeue.Options{
		Dir:      h.Store.Dir,
		Relaxed:  h.Durability == manifest.Relaxed,
		Logger:   logger,
		Observer: observer,
	})
}

// openEngine opens the Wasm engine with its compile cache in the data folder.
func openEngine(data string, logger *slog.Logger) (runtime.Engine, error) {
	return wasm.New(wasm.Config{CacheDir: filepath.Join(data, "compiled"), Logger: logger})
}
