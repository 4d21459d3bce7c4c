package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// measureCommand is the argument with which this program is started to measure
// one system.
const measureCommand = "measure"

// order is the input of a measuring process, as JSON on its standard input.
type order struct {
	System string
	Target target
	Load   load
}

// result is its answer, as JSON on its standard output.
type result struct {
	System   string
	About    about
	Single   throughput // one job per call
	Batched  throughput // zero if the system takes only one job per call
	Quiet    latencies
	Delivery delivery
}

// throughput is the result of a phase.
type throughput struct {
	Enqueued, Done float64       // jobs per second
	CPU            time.Duration // of all processes, per 1,000 jobs
}

// measureMain is the measuring process.
func measureMain(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	var o order
	if err := json.NewDecoder(stdin).Decode(&o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	ctx, stop := context.WithTimeoutCause(ctx, o.Load.Timeout, fmt.Errorf("not done after %v", o.Load.Timeout))
	defer stop()
	r, err := measure(ctx, &o)
	if err != nil {
		return fmt.Errorf("measure %s: %w", o.System, err)
	}
	return json.NewEncoder(stdout).Encode(r)
}

// measure runs all phases on one system.
func measure(ctx context.Context, o *order) (r *result, err error) {
	c := contenders[o.System]
	m := &measurement{load: &o.Load, pid: o.Target.PID, ledger: newLedger(o.Load.jobs())}
	m.system, err = c.open(ctx, o.Target, &o.Load, m.ledger)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { err = errors.Join(err, m.system.close(context.WithoutCancel(ctx))) }()
	r = &result{System: o.System, About: m.system.about()}
	if _, err := m.throughput(ctx, o.Load.Warmup, 1); err != nil {
		return nil, fmt.Errorf("warm up: %w", err)
	}
	if r.Single, err = m.throughput(ctx, o.Load.Jobs, 1); err != nil {
		return nil, fmt.Errorf("one job a call: %w", err)
	}
	if c.batches {
		if r.Batched, err = m.throughput(ctx, o.Load.Jobs, o.Load.Batch); err != nil {
			return nil, fmt.Errorf("many jobs a call: %w", err)
		}
	}
	if r.Quiet, err = m.quiet(ctx); err != nil {
		return nil, fmt.Errorf("quiet pace: %w", err)
	}
	own, err := m.system.counts(ctx)
	if err != nil {
		return nil, fmt.Errorf("count: %w", err)
	}
	r.Delivery, err = m.ledger.audit(m.next, own)
	return r, err
}

// measurement is the state shared by the phases.
type measurement struct {
	load   *load
	pid    int // of the database
	system system
	ledger *ledger
	next   int // the first job of the next phase
}

// throughput lets all producers submit n jobs as fast as they are acknowledged
// and waits until the last one has ended.
func (m *measurement) throughput(ctx context.Context, n, batch int) (throughput, error) {
	if n == 0 {
		return throughput{}, nil
	}
	p := m.begin(n)
	before, err := cpuTime(m.pid)
	if err != nil {
		return throughput{}, err
	}
	var taken atomic.Int64
	producers, pctx := errgroup.WithContext(ctx)
	for range m.load.Producers {
		producers.Go(func() error {
			jobs := make([]int, 0, batch)
			for {
				first := p.first + int(taken.Add(int64(batch))) - batch
				if first >= p.last {
					return nil
				}
				jobs = jobs[:0]
				for j := first; j < min(first+batch, p.last); j++ {
					jobs = append(jobs, j)
				}
				if err := m.submit(pctx, jobs); err != nil {
					return err
				}
			}
		})
	}
	if err := producers.Wait(); err != nil {
		return throughput{}, fmt.Errorf("submit: %w", err)
	}
	if err := m.await(ctx, p); err != nil {
		return throughput{}, err
	}
	after, err := cpuTime(m.pid)
	t := throughput{CPU: (after - before) * 1000 / time.Duration(n)}
	t.Enqueued, t.Done = m.ledger.rates(p)
	return t, err
}

// quiet submits jobs at a steady pace, whether the previous ones have ended or not.
func (m *measurement) quiet(ctx context.Context) (latencies, error) {
	p := m.begin(m.load.paced())
	tick := time.NewTicker(time.Second / time.Duration(m.load.Rate))
	defer tick.Stop()
	submits, sctx := errgroup.WithContext(ctx)
	for n := p.first; n < p.last; n++ {
		select {
		case <-tick.C:
			submits.Go(func() error { return m.submit(sctx, []int{n}) })
		case <-sctx.Done():
			return latencies{}, errors.Join(context.Cause(sctx), submits.Wait())
		}
	}
	if err := submits.Wait(); err != nil {
		return latencies{}, fmt.Errorf("submit: %w", err)
	}
	if err := m.await(ctx, p); err != nil {
		return latencies{}, err
	}
	return m.ledger.latencies(p), nil
}

func (m *measurement) begin(n int) *phase {
	p := m.ledger.begin(m.next, n)
	m.next += n
	return p
}

func (m *measurement) submit(ctx context.Context, jobs []int) error {
	m.ledger.submitting(jobs)
	if err := m.system.submit(ctx, jobs); err != nil {
		return err
	}
	m.ledger.acked(jobs)
	return nil
}

func (m *measurement) await(ctx context.Context, p *phase) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of %d jobs have not ended: %w", p.left.Load(), p.last-p.first, context.Cause(ctx))
	}
}
