package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// River's settings. Its documentation names the fetch cooldown as the bound of
// throughput; the default pause of 100 ms would be most of what is measured
// here. RESULTS.md says which other numbers were tried.
const (
	riverWorkers     = 1000
	riverConnections = 48
	riverCooldown    = 2 * time.Millisecond
	riverPoll        = 20 * time.Millisecond
)

// riverArgs are a job's arguments.
type riverArgs struct {
	N       int    `json:"n"`
	Payload string `json:"payload"`
}

// Kind implements [river.JobArgs].
func (riverArgs) Kind() string { return "noop" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	ledger *ledger
	// numbers maps River's job numbers to ours; events carry only River's.
	// River counts from 1, and skips some when an insert fails.
	numbers []atomic.Int32
}

// Work implements [river.Worker].
func (w *riverWorker) Work(_ context.Context, job *river.Job[riverArgs]) error {
	if job.ID < int64(len(w.numbers)) {
		w.numbers[job.ID].Store(int32(job.Args.N))
	}
	w.ledger.ran(job.Args.N)
	return nil
}

// note reports completions to the ledger, which River publishes after their commit.
func (w *riverWorker) note(ends <-chan *river.Event) {
	for e := range ends {
		n := -1
		if e.Job.ID < int64(len(w.numbers)) {
			n = int(w.numbers[e.Job.ID].Load())
		}
		w.ledger.ended(n)
	}
}

// riverSystem is a River client that inserts and works.
type riverSystem struct {
	pool     *pgxpool.Pool
	client   *river.Client[pgx.Tx]
	payload  string
	said     about
	listener sync.WaitGroup // for worker.note
	unlisten func()         // ends it
}

func openRiver(ctx context.Context, at target, l *load, ledger *ledger) (_ system, err error) {
	s := &riverSystem{payload: strings.Repeat("x", l.Payload)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
		}
	}()
	if err := s.connect(ctx, at.Address); err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(s.pool)
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: logger})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	worker := &riverWorker{ledger: ledger, numbers: make([]atomic.Int32, 2*l.jobs())}
	workers := river.NewWorkers()
	river.AddWorker(workers, worker)
	s.client, err = river.NewClient(driver, &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: riverWorkers}},
		Workers:       workers,
		FetchCooldown: riverCooldown, FetchPollInterval: riverPoll,
		Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	// The channel holds all jobs, because events that don't fit are dropped.
	ends, unlisten := s.client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: l.jobs(), Kinds: []river.EventKind{river.EventKindJobCompleted},
	})
	s.unlisten = unlisten
	s.listener.Go(func() { worker.note(ends) })
	return s, s.client.Start(context.WithoutCancel(ctx))
}

// connect opens the pool and queries the settings of the database.
func (s *riverSystem) connect(ctx context.Context, address string) error {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return err
	}
	config.MaxConns = riverConnections
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	var version, fsync, commit, pages, buffers, wal string
	err = s.pool.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'),
		current_setting('full_page_writes'), current_setting('shared_buffers'), current_setting('max_wal_size')`).
		Scan(&version, &fsync, &commit, &pages, &buffers, &wal)
	if err != nil {
		return fmt.Errorf("ask PostgreSQL for its settings: %w", err)
	}
	s.said = about{
		Versions:   moduleVersions("github.com/riverqueue/river", "github.com/jackc/pgx/v5") + ", PostgreSQL " + version,
		Durability: fmt.Sprintf("fsync=%s, synchronous_commit=%s, full_page_writes=%s", fsync, commit, pages),
		Settings: fmt.Sprintf("MaxWorkers %d, FetchCooldown %v, FetchPollInterval %v, %d connections, InsertManyFast for batches; shared_buffers=%s, max_wal_size=%s",
			riverWorkers, riverCooldown, riverPoll, riverConnections, buffers, wal),
	}
	return nil
}

func (s *riverSystem) submit(ctx context.Context, jobs []int) error {
	if len(jobs) == 1 {
		_, err := s.client.Insert(ctx, s.args(jobs[0]), nil)
		return err
	}
	params := make([]river.InsertManyParams, len(jobs))
	for i, n := range jobs {
		params[i].Args = s.args(n)
	}
	_, err := s.client.InsertManyFast(ctx, params)
	return err
}

func (s *riverSystem) args(n int) riverArgs { return riverArgs{N: n, Payload: s.payload} }

func (s *riverSystem) counts(ctx context.Context) (counts, error) {
	var c counts
	err := s.pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE state='completed'),
		count(*) FILTER (WHERE state NOT IN ('completed','cancelled','discarded')),
		count(*) FILTER (WHERE state IN ('cancelled','discarded')) FROM river_job`).Scan(&c.Succeeded, &c.Open, &c.Failed)
	return c, err
}

func (s *riverSystem) about() about { return s.said }

func (s *riverSystem) close(ctx context.Context) error {
	var err error
	if s.unlisten != nil {
		err = s.client.Stop(ctx)
		s.unlisten()
		s.listener.Wait()
	}
	if s.pool != nil {
		s.pool.Close()
	}
	return err
}
