package hosttest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/host/schedule"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/wasm"
	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
	"github.com/jobhost/jobhost/state/sqlitestate"
)

// Host is a host that runs until its test ends, with what can be asked of it.
type Host struct {
	*host.Host
	server
	stop func() error
}

type server interface {
	jobhost.Server
	jobhost.ResultLister
}

// Stop stops the host and waits for its end, with the tasks that still run.
func (h *Host) Stop() error { return h.stop() }

// Open runs a host in memory that has what [Run] and [RunWorkflows] ask for, changed by the
// given functions, and waits until it is ready. It is stopped when the test ends. A reload finds
// what the host began with, unless they say otherwise.
func Open(t testing.TB, change ...func(*host.Config)) *Host {
	t.Helper()
	return OpenOn(t, func(t testing.TB, cfg *host.Config) { OnDB(t, cfg) }, change...)
}

// Stores gives a configuration its stores, empty ones, which are closed when the test ends.
type Stores func(t testing.TB, cfg *host.Config)

// OpenOn is [Open] on other stores.
func OpenOn(t testing.TB, stores Stores, change ...func(*host.Config)) *Host {
	t.Helper()
	cfg := Storeless(t)
	stores(t, &cfg)
	for _, f := range change {
		f(&cfg)
	}
	if cfg.Reread == nil {
		cfg.Reread = Reread(&cfg)
	}
	h := Start(t, cfg)
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Errorf("stop the host: %v", err)
		}
	})
	return h
}

// Reread returns what makes a reload find what the host began with.
func Reread(cfg *host.Config) func(context.Context) (host.Update, error) {
	return func(context.Context) (host.Update, error) {
		return host.Update{Workers: cfg.Workers, Schedules: cfg.Schedules}, nil
	}
}

// Start runs a host until the test ends, and waits until it is ready. How it ends is for the
// test to look at, with Stop.
func Start(t testing.TB, cfg host.Config) *Host {
	t.Helper()
	h, err := host.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	ready, err := h.AwaitReady(t.Context())
	if err != nil {
		t.Fatalf("%v: %v", err, stop())
	}
	return &Host{h, ready.(server), stop}
}

// Config returns the configuration that [Open] starts from. What it holds is closed when the
// test ends, so the host must have stopped by then.
func Config(t testing.TB) host.Config {
	t.Helper()
	cfg := Storeless(t)
	OnDB(t, &cfg)
	return cfg
}

// Storeless is what [Config] returns, without stores.
func Storeless(t testing.TB) host.Config {
	t.Helper()
	engine, err := sharedEngine()
	if err != nil {
		t.Fatal(err)
	}
	cfg := host.Config{
		Engine: engine, CancelGrace: 50 * time.Millisecond,
		Workers:   []host.Worker{Worker("test", guests.Outcomes)},
		Schedules: []schedule.Schedule{yearly(t)},
		Workflows: host.Workflows{Definitions: Definitions()},
		Payloads:  payloads(t), PayloadThreshold: 1024,
	}
	cfg.Workers[0].Entry = "echo"
	return cfg
}

// OnDB gives a configuration stores in a database in memory, which a test can change by itself.
// They are closed when the test ends, so the host must have stopped by then.
func OnDB(t testing.TB, cfg *host.Config) *sqlitedb.DB {
	t.Helper()
	image, err := emptyStores()
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlitedb.Open(sqlitedb.Options{Schemas: schemas(), Image: image})
	if err != nil {
		t.Fatal(err)
	}
	states, err := sqlitestate.New(db)
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlitequeue.New(db, states)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(states.Close(), store.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	cfg.Store, cfg.States = store, states
	return db
}

func schemas() []sqlitedb.Schema { return append(sqlitequeue.Schemas(), sqlitestate.Schemas()...) }

// emptyStores is what the stores of all hosts of a test binary begin as: making the tables costs
// as much as all else that a start does.
var emptyStores = sync.OnceValues(func() (*sqlitedb.Image, error) {
	db, err := sqlitedb.Open(sqlitedb.Options{Schemas: schemas()})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return db.Image(), nil
})

// Worker returns a worker with two slots and a short first wait before a retry.
func Worker(name string, plugin []byte) host.Worker {
	retry := jobhost.DefaultRetry()
	retry.Initial = time.Millisecond
	return host.Worker{
		Name: name, Path: name + ".wasm", Plugin: plugin, PoolSize: 2, QueueCapacity: 1000,
		Limits: runtime.DefaultLimits(), Retry: retry,
	}
}

// sharedEngine is the engine of all hosts of a test binary. Proving what the machine can do
// takes longer than the start of a host, so it is done once; the engine ends with the process.
var sharedEngine = sync.OnceValues(func() (*wasm.Engine, error) { return wasm.New(wasm.Config{}) })

// yearly is the schedule that [Run] asks for.
func yearly(t testing.TB) schedule.Schedule {
	t.Helper()
	timing, err := schedule.Cron("0 0 1 1 *", "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return schedule.Schedule{
		Name: "yearly", Timing: timing, Job: jobhost.Spec{Worker: "test", Entry: "echo", Payload: []byte("happy new year")},
	}
}

// payloads returns a set of one store in memory.
func payloads(t testing.TB) *payload.Set {
	t.Helper()
	set, err := payload.New(payload.Config{Stores: []payload.Named{{Name: "one", Store: payloadtest.NewMemory()}}, Compress: true})
	if err != nil {
		t.Fatal(err)
	}
	return set
}
