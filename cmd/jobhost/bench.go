package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/noop"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/state"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	jobs, producers, batch, backlog, slots, payload int
	worker, dir, store, sandbox                     string
	processes                                       int
	relaxed, memory, sequential                     bool
	given                                           func(flag string) bool // on the command line
}

func newBenchCommand(e *env) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how many durable jobs a second this machine does",
		Long: `Measure how many durable jobs a second this machine does.

A host runs in this process on a store of its own, in a temporary folder that is
removed afterwards, or with --store in a PostgreSQL. Producers submit jobs as fast
as they are acknowledged; the clock stops when the last job's end is durable. With
--sequential each producer waits for the end of its job before it submits the next,
which shows latency rather than throughput. A --backlog is in the store before the
host starts, at a lower priority than the jobs; with --jobs 0 what is measured is
its end.

With --addr the jobs go to a host that runs, for a --worker of its own. Submits
are sent again for up to a minute while no host answers there, as when another host
of a cluster takes over: name a host that goes on.`,
		Example: `  jobhost bench --jobs 100000 --producers 256 --worker noop
  jobhost bench --jobs 2000 --producers 1 --sequential
  jobhost bench --jobs 0 --backlog 1000000 -o json
  jobhost bench --addr http://127.0.0.1:7070 --worker wordcount`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBench(cmd.Context(), e, &f) },
	}
	flags := cmd.Flags()
	f.given = flags.Changed
	flags.IntVar(&f.jobs, "jobs", 100_000, "`NUMBER` of jobs to measure")
	flags.IntVar(&f.producers, "producers", 256, "`NUMBER` of goroutines that submit")
	flags.IntVar(&f.batch, "batch", 1, "`NUMBER` of jobs in a submit")
	flags.IntVar(&f.backlog, "backlog", 0, "`NUMBER` of jobs that are in the store before the host starts")
	flags.IntVar(&f.slots, "slots", 0, "`NUMBER` of slots of the worker (default: one per CPU, 32 per CPU if in processes)")
	flags.IntVar(&f.payload, "payload", 64, "size of the payloads, in `BYTES`")
	flags.StringVar(&f.worker, "worker", "noop", "the built-in noop, or a `WORKER` of the manifest")
	flags.StringVar(&f.dir, "dir", "", "`FOLDER` for the store (default: a temporary one; it matters which disk that is on)")
	flags.StringVar(&f.store, "store", "", "`URL` of a PostgreSQL in which to measure, in a schema that is dropped afterwards")
	flags.StringVar(&f.sandbox, "sandbox", "", "where sandboxes run: `inline` or process (default: as the worker says)")
	flags.IntVar(&f.processes, "processes", 0, "`NUMBER` of processes that they run in, if in such (default: as the worker says)")
	flags.BoolVar(&f.relaxed, "relaxed", false, "don't wait for the disk")
	flags.BoolVar(&f.memory, "memory", false, "a store in memory")
	flags.BoolVar(&f.sequential, "sequential", false, "each producer waits for the end of its job")
	return cmd
}

func (f *benchFlags) check() error {
	switch {
	case f.jobs < 0 || f.jobs > 50_000_000:
		return usagef("--jobs %d is not between 0 and 50000000", f.jobs)
	case f.jobs == 0 && f.backlog == 0:
		return usagef("there is nothing to measure: --jobs and --backlog are 0")
	case f.producers < 1 || f.producers > 100_000:
		return usagef("--producers %d is not between 1 and 100000", f.producers)
	case f.batch < 1 || f.batch > 1000:
		return usagef("--batch %d is not between 1 and 1000", f.batch)
	case f.backlog < 0 || f.backlog > 50_000_000:
		return usagef("--backlog %d is not between 0 and 50000000", f.backlog)
	case f.sandbox != "" && !slices.Contains(runtime.Placements(), runtime.Placement(f.sandbox)):
		return usagef("--sandbox %s is neither inline nor process", f.sandbox)
	case f.processes < 0 || f.processes > 64:
		return usagef("--processes %d is not between 1 and 64", f.processes)
	case f.store != "" && (f.memory || f.dir != ""):
		return usagef("--store doesn't go with --memory and --dir")
	case f.payload < 0 || f.payload > 1<<20:
		return usagef("--payload %d is not between 0 and 1048576", f.payload)
	}
	return nil
}

func runBench(ctx context.Context, e *env, f *benchFlags) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	if e.options.addr != "" {
		return runRemoteBench(ctx, e, f)
	}
	w, err := benchWorker(e, f)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(f.dir, "jobhost-bench-*")
	if err != nil {
		return fmt.Errorf("make a folder for the store: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	logger := slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx, stop := untilSignal(ctx, logger, syscall.SIGINT, syscall.SIGTERM) // so that the folder is removed
	defer stop()
	b := newBenchRun(f, w)
	store, err := b.openStore(ctx, dir, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	engine, err := openEngine(dir, nil, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close(context.WithoutCancel(ctx))) }()
	if err := b.fill(ctx, store.jobs); err != nil {
		return fmt.Errorf("fill the backlog: %w", err)
	}
	noted, err := openJournal(store.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, noted.Close()) }()
	h, err := host.New(host.Config{
		Journal: noted,
		Store:   store.jobs, States: store.states, Engine: engine, Workers: []host.Worker{w}, Logger: logger, Aging: -1, OnEvent: b.event,
		ShutdownTimeout: 10 * time.Second,
	})
	if err != nil {
		return err
	}
	report, err := b.measure(ctx, h)
	if err != nil {
		return err
	}
	report.Durability = f.durability()
	if e.wantsJSON() {
		return e.json(report)
	}
	report.print(e.stdout)
	return nil
}

func (f *benchFlags) settings(dir string) manifest.Host {
	h := manifest.Host{Store: manifest.Store{Driver: "sqlite", Dir: dir}, Durability: manifest.Strict}
	if f.relaxed {
		h.Durability = manifest.Relaxed
	}
	if f.memory {
		h.Store = manifest.Store{Driver: "mem"}
	}
	return h
}

// benchStore is the store of a measurement.
type benchStore struct {
	jobs   record.Store
	states state.Store
	dir    string // of its files; empty = there are none
	close  func() error
}

func (b *benchRun) openStore(ctx context.Context, dir string, logger *slog.Logger) (*benchStore, error) {
	settings := b.flags.settings(dir)
	if b.flags.store != "" {
		return b.openPostgres(ctx, &settings, logger)
	}
	s, err := openStores(ctx, &settings, b.observer(), state.Observer{}, logger)
	if err != nil {
		return nil, err
	}
	return &benchStore{s.jobs, s.states, settings.Store.Dir, s.Close}, nil
}

// openPostgres begins a term in a schema of its own, which goes with it.
func (b *benchRun) openPostgres(ctx context.Context, h *manifest.Host, logger *slog.Logger) (_ *benchStore, err error) {
	schema := "jobhost_bench_" + strings.ToLower(rand.Text()[:8])
	db, err := pgdb.Open(ctx, pgdb.Config{
		URL: b.flags.store, Schema: schema, Host: "bench", Relaxed: h.Durability == manifest.Relaxed, Logger: logger,
		Observer: pgdb.Observer{Committed: b.committed},
	})
	if err != nil {
		return nil, err
	}
	drop := func() error {
		dropped := db.Send(context.WithoutCancel(ctx), func(batch *pgx.Batch) { batch.Queue("DROP SCHEMA IF EXISTS " + schema + " CASCADE") })
		db.Close()
		return dropped
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, drop())
		}
	}()
	if err := db.Migrate(ctx, sharedSchemas()); err != nil {
		return nil, err
	}
	term, err := db.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	stores, err := openShared(ctx, db, term)
	if err != nil {
		return nil, errors.Join(err, term.Release(context.WithoutCancel(ctx)))
	}
	return &benchStore{stores.jobs, stores.states, "", func() error {
		return errors.Join(stores.Close(), term.Release(context.WithoutCancel(ctx)), drop())
	}}, nil
}

func (f *benchFlags) durability() string {
	switch {
	case f.memory:
		return "none (in memory)"
	case f.relaxed:
		return string(manifest.Relaxed)
	}
	return string(manifest.Strict)
}

func benchWorker(e *env, f *benchFlags) (host.Worker, error) {
	w := host.Worker{
		Name: "noop", Path: "built-in", Plugin: noop.Module, Limits: runtime.DefaultLimits(), Retry: jobhost.DefaultRetry(),
	}
	if f.worker != "noop" {
		var err error
		if w, err = execWorker(e, f.worker); err != nil {
			return w, err
		}
	}
	w.Sandbox, w.Processes = cmp.Or(runtime.Placement(f.sandbox), w.Sandbox), cmp.Or(f.processes, w.Processes)
	w.QueueCapacity = f.jobs + f.backlog + f.producers*f.batch
	if w.PoolSize = f.slots; f.slots == 0 {
		w.PoolSize = defaultSlots()
		if w.Sandbox == runtime.SandboxProcess {
			w.PoolSize *= manifest.SlotsInProcess
		}
	}
	return w, nil
}

// openJournal opens what notes the attempts that are under way, as a host that runs does;
// nil without a folder.
func openJournal(dir string) (*journal.Journal, error) {
	if dir == "" {
		return nil, nil
	}
	return journal.Open(filepath.Join(dir, journal.FileName), func() {})
}
