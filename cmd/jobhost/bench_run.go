package main

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

func defaultSlots() int { return goruntime.GOMAXPROCS(0) }

// benchRun is one measurement. Measured job n is called "b-" and n in nine
// digits, so that its events find their place in the tables of times without a
// map. Such ids rise with time, as those do that the host makes.
type benchRun struct {
	flags   *benchFlags
	worker  host.Worker
	payload []byte

	began           []time.Time     // per job: when its submit began
	submitted, done []time.Duration // per job, since began
	waiting         []chan struct{} // per job, with --sequential: closed at its end
	next            atomic.Int64    // the job to submit

	want     int64         // jobs whose end is awaited
	wanted   atomic.Int64  // of those that have ended
	finished chan struct{} // closed when all have
	ended    atomic.Int64  // jobs of all kinds that have ended
	failed   atomic.Int64

	commits, operations, committing atomic.Int64 // the last in nanoseconds

	ready           time.Duration // from the start of the host until it took jobs
	bytesPerWaiting float64
}

const benchPrefix = "b-"

func newBenchRun(f *benchFlags, w host.Worker) *benchRun {
	b := &benchRun{
		flags:     f,
		worker:    w,
		payload:   []byte(strings.Repeat("x", f.payload)),
		began:     make([]time.Time, f.jobs),
		submitted: make([]time.Duration, f.jobs),
		done:      make([]time.Duration, f.jobs),
		finished:  make(chan struct{}),
		want:      int64(f.jobs),
	}
	if f.jobs == 0 {
		b.want = int64(f.backlog)
	}
	if f.sequential {
		b.waiting = make([]chan struct{}, f.jobs)
		for i := range b.waiting {
			b.waiting[i] = make(chan struct{})
		}
	}
	return b
}

// observer counts the commits of the store.
func (b *benchRun) observer() sqlitedb.Observer {
	return sqlitedb.Observer{Commit: b.committed}
}

// committed counts a commit.
func (b *benchRun) committed(ops int, took time.Duration) {
	b.commits.Add(1)
	b.operations.Add(int64(ops))
	b.committing.Add(int64(took))
}

// event notes the end of a job.
func (b *benchRun) event(e jobhost.Event) {
	if e.Kind != jobhost.EventEnded {
		return
	}
	b.ended.Add(1)
	if e.State != jobhost.Succeeded {
		b.failed.Add(1)
	}
	number, measured := strings.CutPrefix(e.Job, benchPrefix)
	if measured {
		n, err := strconv.Atoi(number)
		if err != nil || n >= len(b.done) {
			return // a job of a backlog with an unlucky id
		}
		b.done[n] = time.Since(b.began[n])
		if b.waiting != nil {
			close(b.waiting[n])
		}
	}
	if (measured || b.flags.jobs == 0) && b.wanted.Add(1) == b.want {
		close(b.finished)
	}
}

// fill puts the backlog into the store, before there is a host.
func (b *benchRun) fill(ctx context.Context, store record.Store) (err error) {
	if b.flags.backlog == 0 {
		return nil
	}
	q, err := queue.New(ctx, store, queue.Config{
		Workers: []queue.Worker{{Name: b.worker.Name, Capacity: b.worker.QueueCapacity, Retry: b.worker.Retry, Timeout: b.worker.Limits.Timeout}},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close(context.WithoutCancel(ctx))) }()
	for left := b.flags.backlog; left > 0; {
		specs := make([]jobhost.Spec, min(left, 1000))
		for i := range specs {
			specs[i] = jobhost.Spec{Worker: b.worker.Name, Payload: b.payload, Priority: jobhost.Background}
		}
		answers, err := q.SubmitBatch(ctx, specs)
		for _, a := range answers {
			err = errors.Join(err, a.Err)
		}
		if err != nil {
			return err
		}
		left -= len(specs)
	}
	return nil
}

// measure runs the host and the producers, and waits for the ends.
func (b *benchRun) measure(ctx context.Context, h *host.Host) (benchReport, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	root := scope.New(context.WithoutCancel(ctx), "bench")
	before := heap()
	began := time.Now()
	var report benchReport
	err := errors.Join(
		root.Go("host", func(context.Context) error { return h.Run(ctx) }),
		root.Go("measure", func(work context.Context) (err error) {
			defer stop()
			server, err := h.AwaitReady(work)
			if err != nil {
				return err
			}
			b.ready = time.Since(began)
			if b.flags.backlog > 0 {
				b.bytesPerWaiting = float64(heap()-before) / float64(b.flags.backlog)
			}
			report, err = b.measureRunning(ctx, server)
			return err
		}),
	)
	outcome, _ := root.Join(context.Background()) // without an end it waits to the end
	return report, errors.Join(err, outcome.Err())
}

func (b *benchRun) measureRunning(ctx context.Context, server jobhost.Submitter) (benchReport, error) {
	ended, commits, operations, committing := b.ended.Load(), b.commits.Load(), b.operations.Load(), b.committing.Load()
	began := time.Now()
	producers := scope.New(ctx, "producers")
	for range b.flags.producers {
		if err := producers.Go("producer", func(ctx context.Context) error { return b.produce(ctx, server) }); err != nil {
			return benchReport{}, err
		}
	}
	if _, err := producers.Join(ctx); err != nil {
		return benchReport{}, err
	}
	if err := producers.Report().Err(); err != nil {
		return benchReport{}, err
	}
	select {
	case <-b.finished:
	case <-ctx.Done():
		return benchReport{}, context.Cause(ctx)
	}
	r := b.report(time.Since(began), b.ended.Load()-ended)
	r.Commits = b.commits.Load() - commits
	if r.Commits > 0 {
		r.BatchMean = float64(b.operations.Load()-operations) / float64(r.Commits)
		r.CommitMean = millis(time.Duration((b.committing.Load() - committing) / r.Commits))
	}
	return r, nil
}

// produce submits jobs until there are none left.
func (b *benchRun) produce(ctx context.Context, server jobhost.Submitter) error {
	for {
		first := int(b.next.Add(int64(b.flags.batch))) - b.flags.batch
		if first >= b.flags.jobs {
			return nil
		}
		last := min(first+b.flags.batch, b.flags.jobs)
		if err := b.submit(ctx, server, first, last); err != nil {
			return err
		}
		if b.waiting == nil {
			continue
		}
		for n := first; n < last; n++ {
			select {
			case <-b.waiting[n]:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// submit submits the jobs from first to before last.
func (b *benchRun) submit(ctx context.Context, server jobhost.Submitter, first, last int) (err error) {
	began := time.Now()
	specs := make([]jobhost.Spec, last-first)
	for i := range specs {
		b.began[first+i] = began
		specs[i] = jobhost.Spec{ID: fmt.Sprintf("%s%09d", benchPrefix, first+i), Worker: b.worker.Name, Payload: b.payload}
	}
	if len(specs) == 1 {
		_, err = server.Submit(ctx, specs[0])
	} else {
		var answers []jobhost.Submitted
		answers, err = server.SubmitBatch(ctx, specs)
		for _, a := range answers {
			err = errors.Join(err, a.Err)
		}
	}
	took := time.Since(began)
	for n := first; n < last; n++ {
		b.submitted[n] = took
	}
	return err
}

// heap is the memory in use, in bytes.
func heap() int64 {
	goruntime.GC()
	var s goruntime.MemStats
	goruntime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
