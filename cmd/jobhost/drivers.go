package main

import (
	"context"
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

// freeSpace returns how to tell the free space of a store; nil when it has no files.
func freeSpace(h *manifest.Host) func() (int64, error) {
	if h.Store.Dir == "" {
		return nil
	}
	return func() (int64, error) { return sqlitedb.FreeSpace(h.Store.Dir) }
}

// backupStore copies a store into a directory.
func backupStore(ctx context.Context, h *manifest.Host, to string) error {
	return sqlitedb.Backup(ctx, h.Store.Dir, to)
}

// restoreStore puts a backup in the place of a store.
func restoreStore(ctx context.Context, h *manifest.Host, from string, replace bool) (kept string, err error) {
	opts := sqlitedb.Options{Dir: h.Store.Dir, Schemas: sqlitequeue.Schemas()}
	return sqlitedb.Restore(ctx, opts, from, replace)
}

// openEngine opens the Wasm engine with its compile cache in the data folder.
func openEngine(data string, logger *slog.Logger) (runtime.Engine, error) {
	return wasm.New(wasm.Config{CacheDir: filepath.Join(data, "compiled"), Logger: logger})
}
