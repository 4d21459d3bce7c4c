package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/object"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/process"
	"github.com/jobhost/jobhost/runtime/wasm"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/firestorestate"
	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/filepayload"
	"github.com/jobhost/jobhost/state/payload/pgpayload"
	"github.com/jobhost/jobhost/state/payload/redispayload"
	"github.com/jobhost/jobhost/state/payload/s3payload"
	"github.com/jobhost/jobhost/state/sqlitestate"
)

// This file is the one place that knows the concrete drivers.

// stores are where jobs are kept, and the states of their tasks.
type stores struct {
	db     *sqlitedb.DB
	jobs   *sqlitequeue.Store
	states state.Store
}

// schemas returns the tables of the store.
func schemas() []sqlitedb.Schema { return append(sqlitequeue.Schemas(), sqlitestate.Schemas()...) }

// openStores opens the store that a manifest names, of which watch observes the
// states. Both of its drivers are SQLite: "mem" has no folder, and so no file. Jobs
// and states share a database, so that states cost no sync of their own and go with
// their job; unless the manifest wants them elsewhere.
func openStores(ctx context.Context, h *manifest.Host, observer sqlitedb.Observer, watch state.Observer, logger *slog.Logger) (_ *stores, err error) {
	s := &stores{}
	s.db, err = sqlitedb.Open(sqlitedb.Options{
		Dir: h.Store.Dir, Relaxed: h.Durability == manifest.Relaxed, Schemas: schemas(), Logger: logger, Observer: observer,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		if s.states != nil {
			err = errors.Join(err, s.states.Close())
		}
		if s.jobs != nil {
			err = errors.Join(err, s.jobs.Close())
		}
		err = errors.Join(err, s.db.Close())
	}()
	if h.States.Project != "" {
		if s.jobs, err = sqlitequeue.New(s.db); err != nil {
			return nil, err
		}
		if err = refuseRestored(ctx, s.jobs, h); err != nil {
			return nil, err
		}
		remote, err := firestorestate.Open(context.WithoutCancel(ctx), firestorestate.Options{
			Project: h.States.Project, Database: h.States.Database, Logger: logger, Observer: watch,
		})
		if err != nil {
			return nil, err
		}
		s.states = remote
		return s, nil
	}
	states, err := sqlitestate.New(s.db)
	if err != nil {
		return nil, err
	}
	s.states = states
	s.jobs, err = sqlitequeue.New(s.db, states)
	return s, err
}

// refuseRestored returns an error for a restored store that has not taken over: the
// states outside it are those of the original, which may be alive.
func refuseRestored(ctx context.Context, jobs *sqlitequeue.Store, h *manifest.Host) error {
	restored, err := object.LeavesToOriginal(ctx, jobs)
	if err != nil || !restored {
		return err
	}
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Field: "host.states",
		Message: "the store in " + h.Store.Dir + " was restored from a backup, and the states in Firestore may be those of the original, which is alive",
		Hint:    `for a drill or a copy beside it set host.states to "store"; if the original is gone: jobhost restore --take-over`,
	}
}

// Close closes them.
func (s *stores) Close() error { return errors.Join(s.states.Close(), s.jobs.Close(), s.db.Close()) }

// freeSpace returns how to tell the free space of a store; nil when it has no files.
func freeSpace(h *manifest.Host) func() (int64, error) {
	if h.Store.Dir == "" {
		return nil
	}
	return func() (int64, error) { return sqlitedb.FreeSpace(h.Store.Dir) }
}

// place returns where a store is; empty when it has no files.
func place(h *manifest.Host) (string, error) {
	if h.Store.Dir == "" {
		return "", nil
	}
	return sqlitedb.Place(h.Store.Dir)
}

// payloadsDir is the folder of a backup for the objects of payload stores that
// are folders, each below its name.
const payloadsDir = "payloads"

// compiledDir is the folder for compiled modules, in that for data.
const compiledDir = "compiled"

// backupStore copies a store into a directory, and the payload stores that are
// folders. While it does nothing is deleted from them, so that all is there that
// the copy of the store refers to. It returns which rows of the copy are damaged, as
// they are in the store.
func backupStore(ctx context.Context, m *manifest.Manifest, to string) (damages sqlitedb.Damages, err error) {
	folders := folderStores(m)
	held := make([]func(), 0, len(folders))
	defer func() {
		for _, release := range held {
			release()
		}
	}()
	for _, s := range folders {
		release, err := filepayload.Hold(s.Path)
		if err != nil {
			return damages, err
		}
		held = append(held, release)
	}
	if err := sqlitedb.Backup(ctx, m.Host.Store.Dir, to); err != nil {
		return damages, err
	}
	for _, s := range folders {
		if _, err := filepayload.Copy(ctx, s.Path, filepath.Join(to, payloadsDir, s.Name)); err != nil {
			return damages, err
		}
	}
	return damages, sqlitedb.CheckRows(ctx, filepath.Join(to, sqlitedb.FileName), schemas(), damages.Add)
}

// restoreStore puts a backup in the place of a store. Payloads come first: one
// without a job does no harm. Unless it takes over, the store leaves the
// payloads that it refers to to the original.
func restoreStore(ctx context.Context, m *manifest.Manifest, from string, replace, takeOver bool) (kept string, err error) {
	for _, s := range folderStores(m) {
		if _, err := filepayload.Copy(ctx, filepath.Join(from, payloadsDir, s.Name), s.Path); err != nil {
			return "", err
		}
	}
	opts := sqlitedb.Options{Dir: m.Host.Store.Dir, Schemas: schemas()}
	if !takeOver {
		opts.Restored = sqlitequeue.MarkRestored
	}
	return sqlitedb.Restore(ctx, opts, from, replace)
}

// takeOver makes the store that is there the one in which the original goes on.
// It returns of how many origins the payloads are its own now.
func takeOver(ctx context.Context, m *manifest.Manifest) (_ int, err error) {
	if _, err := os.Stat(filepath.Join(m.Host.Store.Dir, sqlitedb.FileName)); err != nil {
		return 0, &jobhost.Error{
			Code: jobhost.CodeNotFound, Message: "there is no store in " + m.Host.Store.Dir, Cause: err,
			Hint: "to restore one: jobhost restore DIR --take-over",
		}
	}
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: m.Host.Store.Dir, Schemas: schemas()})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	jobs, err := sqlitequeue.New(db)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, jobs.Close()) }()
	return object.TakeOver(ctx, jobs)
}

// folderStores returns the payload stores that are folders.
func folderStores(m *manifest.Manifest) []manifest.PayloadStore {
	return slices.DeleteFunc(slices.Clone(m.Payload.Stores), func(s manifest.PayloadStore) bool {
		return s.Kind != manifest.FilePayloads
	})
}

// openPayloads opens the payload stores that a manifest names; shared is the PostgreSQL
// for those of kind database.
func openPayloads(p *manifest.Payload, shared *pgdb.DB, observe func(payload.Done), logger *slog.Logger) (_ *payload.Set, err error) {
	cfg := payload.Config{Compress: p.Compress, Observe: observe}
	defer func() {
		if err != nil {
			for _, s := range cfg.Stores {
				err = errors.Join(err, s.Store.Close())
			}
		}
	}()
	for i := range p.Stores {
		store, err := openPayloadStore(&p.Stores[i], shared, logger)
		if err != nil {
			return nil, fmt.Errorf("payload store %s: %w", p.Stores[i].Name, err)
		}
		cfg.Stores = append(cfg.Stores, payload.Named{Name: p.Stores[i].Name, Store: store})
	}
	for _, key := range p.Keys {
		secret, err := payload.ParseSecret(key.Secret.Reveal())
		if err != nil {
			return nil, fmt.Errorf("payload key %s: %w", key.ID, err)
		}
		cfg.Keys = append(cfg.Keys, payload.Key{ID: key.ID, Secret: secret})
	}
	return payload.New(cfg)
}

func openPayloadStore(s *manifest.PayloadStore, shared *pgdb.DB, logger *slog.Logger) (payload.Store, error) {
	switch s.Kind {
	case manifest.S3Payloads:
		return s3payload.Open(s3payload.Config{
			Endpoint: s.Endpoint, Region: s.Region, Bucket: s.Bucket, Prefix: s.Prefix, PathStyle: s.PathStyle,
			AccessKey: s.AccessKey.Reveal(), SecretKey: s.SecretKey.Reveal(),
		})
	case manifest.RedisPayloads:
		return redispayload.Open(redispayload.Config{
			URL: s.URL, Password: s.Password.Reveal(), Prefix: s.Prefix, TTL: s.TTL, Relaxed: !s.Durable, Logger: logger,
		})
	case manifest.DatabasePayloads:
		return pgpayload.New(shared), nil
	}
	return filepayload.Open(s.Path)
}

// openEngine opens the engines of all kinds of plugins, with compiled modules kept in the data folder.
// observer is notified of processes; nil = none.
func openEngine(data string, observer process.Observer, logger *slog.Logger) (_ runtime.Engine, err error) {
	engines := &runtime.Engines{}
	defer func() {
		if err != nil {
			err = errors.Join(err, engines.Close(context.Background()))
		}
	}()
	if engines.Inline, err = openWasm(filepath.Join(data, compiledDir), logger); err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which sandbox processes run: %w", err)
	}
	sandboxes, err := process.NewSandboxes(process.SandboxConfig{
		Command: []string{exe, sandboxCommand}, CacheDir: filepath.Join(data, compiledDir, "processes"), Observer: observer, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	engines.Sandboxes = sandboxes
	natives, err := process.NewNatives(process.NativeConfig{Guard: []string{exe, guardCommand}, Observer: observer, Logger: logger})
	if err != nil {
		return nil, err
	}
	engines.Native = natives
	return engines, nil
}

// openWasm opens the engine that runs modules in this process.
func openWasm(cache string, logger *slog.Logger) (runtime.Engine, error) {
	return wasm.New(wasm.Config{CacheDir: cache, Logger: logger})
}
