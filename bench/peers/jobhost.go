package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/internal/version"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// jobPrefix begins the ids of jobs, where the number follows in nine digits.
const jobPrefix = "p-"

func jobID(n int) string { return fmt.Sprintf("%s%09d", jobPrefix, n) }

// jobNumber is the number in an id, -1 when it is not one of ours.
func jobNumber(id string) int {
	digits, ours := strings.CutPrefix(id, jobPrefix)
	n, err := strconv.Atoi(digits)
	if !ours || err != nil {
		return -1
	}
	return n
}

// inProcess is a host with its guest in Wasm, a pristine sandbox for each job, and
// strict durability. Aging costs nothing and stays on.
type inProcess struct {
	server  jobhost.Server
	store   about // what it says of it
	slots   int
	payload []byte
	running errgroup.Group // the host
	stop    context.CancelFunc
	free    []func() error // what to close when the host has stopped
}

// openJobhost opens a host with its store in a file.
func openJobhost(ctx context.Context, at target, l *load, ledger *ledger) (system, error) {
	return openHost(ctx, l, ledger, func(s *inProcess, logger *slog.Logger) (record.Store, error) {
		store, err := sqlitequeue.Open(sqlitequeue.Options{Dir: at.Dir, Logger: logger})
		if err != nil {
			return nil, err
		}
		s.free = append(s.free, store.Close)
		s.store = about{
			Versions:   moduleVersions("github.com/ncruces/go-sqlite3", "github.com/tetratelabs/wazero"),
			Durability: "strict: SQLite WAL, synchronous=FULL, one fsync for each group of jobs",
		}
		return store, nil
	})
}

// openJobhostOnPostgres opens a host that leads on a PostgreSQL.
func openJobhostOnPostgres(ctx context.Context, at target, l *load, ledger *ledger) (system, error) {
	return openHost(ctx, l, ledger, func(s *inProcess, logger *slog.Logger) (record.Store, error) {
		db, err := pgdb.Open(ctx, pgdb.Config{URL: at.Address, Host: "peers", Logger: logger})
		if err != nil {
			return nil, err
		}
		s.free = append(s.free, func() error { db.Close(); return nil })
		if err := db.Migrate(ctx, pgqueue.Schemas()); err != nil {
			return nil, err
		}
		term, err := db.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		s.free = append(s.free, func() error { return term.Release(context.WithoutCancel(ctx)) })
		writer, err := term.NewWriter(ctx)
		if err != nil {
			return nil, err
		}
		s.free = append(s.free, func() error { writer.Close(); return nil })
		var version string
		if err := db.Read(ctx, func(r *pgdb.Session) error {
			_, err := r.One([]any{&version}, "SELECT current_setting('server_version')")
			return err
		}); err != nil {
			return nil, err
		}
		s.store = about{
			Versions:   "PostgreSQL " + version + ", " + moduleVersions("github.com/jackc/pgx/v5", "github.com/tetratelabs/wazero"),
			Durability: "fsync and synchronous_commit on, one transaction for each group of jobs",
		}
		return pgqueue.New(ctx, db, term, writer)
	})
}

func openHost(ctx context.Context, l *load, ledger *ledger, open func(*inProcess, *slog.Logger) (record.Store, error)) (_ system, err error) {
	s := &inProcess{slots: goruntime.GOMAXPROCS(0), payload: make([]byte, l.Payload)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	store, err := open(s, logger)
	if err != nil {
		return nil, err
	}
	engine, err := wasm.New(wasm.Config{Logger: logger})
	if err != nil {
		return nil, err
	}
	s.free = append(s.free, func() error { return engine.Close(context.WithoutCancel(ctx)) })
	h, err := host.New(host.Config{
		Store: store, Engine: engine, Logger: logger,
		Workers: []host.Worker{{Name: "noop", Plugin: guests.Noop, PoolSize: s.slots, QueueCapacity: l.jobs()}},
		OnEvent: func(e jobhost.Event) {
			switch {
			case e.Kind == jobhost.EventStarted:
				ledger.ran(jobNumber(e.Job))
			case e.Kind == jobhost.EventEnded && e.State == jobhost.Succeeded:
				ledger.ended(jobNumber(e.Job))
			}
		},
	})
	if err != nil {
		return nil, err
	}
	hctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.running.Go(func() error { return h.Run(hctx) })
	s.server, err = h.AwaitReady(ctx)
	return s, err
}

func (s *inProcess) submit(ctx context.Context, jobs []int) error {
	if len(jobs) == 1 {
		_, err := s.server.Submit(ctx, s.spec(jobs[0]))
		return err
	}
	specs := make([]jobhost.Spec, len(jobs))
	for i, n := range jobs {
		specs[i] = s.spec(n)
	}
	answers, err := s.server.SubmitBatch(ctx, specs)
	for _, a := range answers {
		err = errors.Join(err, a.Err)
	}
	return err
}

func (s *inProcess) spec(n int) jobhost.Spec {
	return jobhost.Spec{ID: jobID(n), Worker: "noop", Payload: s.payload}
}

func (s *inProcess) counts(ctx context.Context) (counts, error) {
	workers, err := s.server.Workers(ctx)
	if err != nil {
		return counts{}, err
	}
	var c counts
	for _, w := range workers {
		for state, n := range w.Tasks {
			switch state {
			case jobhost.Succeeded.String():
				c.Succeeded += n
			case jobhost.Dead.String(), jobhost.Cancelled.String():
				c.Failed += n
			default:
				c.Open += n
			}
		}
	}
	return c, nil
}

func (s *inProcess) about() about {
	return about{
		Versions:   version.Get().String() + ", " + s.store.Versions,
		Durability: s.store.Durability,
		Settings:   fmt.Sprintf("in process, a Wasm guest in a pristine sandbox for each job, %d slots", s.slots),
	}
}

func (s *inProcess) close(context.Context) error {
	var err error
	if s.stop != nil {
		s.stop()
		err = s.running.Wait()
	}
	for i := len(s.free) - 1; i >= 0; i-- {
		err = errors.Join(err, s.free[i]())
	}
	return err
}
