package sqlitedb

import (
	"errors"
	"log/slog"
)

// StoreOptions say what to open for a store that has a database of its own. The
// zero value is an empty database in memory.
type StoreOptions struct {
	// Dir is the directory of the database; empty = in memory, gone at Close.
	Dir string
	// Relaxed doesn't wait for the disk: see [Options].
	Relaxed bool
	// Logger gets what no caller is there to receive; nil = nothing is logged.
	Logger *slog.Logger
	// Observer is called after each commit, for metrics.
	Observer Observer
}

// OpenStore opens a database with the schemas of one store, and the store in it:
// open makes that. If it can't, the database is closed again.
func OpenStore[S any](opts StoreOptions, schemas []Schema, open func(*DB) (S, error)) (S, error) {
	var none S
	db, err := Open(Options{
		Dir: opts.Dir, Relaxed: opts.Relaxed, Schemas: schemas, Logger: opts.Logger, Observer: opts.Observer,
	})
	if err != nil {
		return none, err
	}
	store, err := open(db)
	if err != nil {
		return none, errors.Join(err, db.Close())
	}
	return store, nil
}
