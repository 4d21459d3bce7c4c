package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/scope"
)

// patience is how long a producer tries to submit a job to a host that is away.
const patience = time.Minute

// remoteReport is what bench prints of a host that runs elsewhere.
type remoteReport struct {
	Jobs          int        `json:"jobs"`
	Producers     int        `json:"producers"`
	Worker        string     `json:"worker"`
	Seconds       float64    `json:"seconds"` // to the end of the last job
	JobsPerSecond float64    `json:"jobs_per_second"`
	Submit        benchTimes `json:"submit"`
	// Gap is the longest time in which no submit was acknowledged, and Repeated how many were sent again.
	Gap      float64 `json:"longest_gap_ms"`
	Repeated int64   `json:"repeated"`
}

// remoteRun measures a host that runs, over its API.
type remoteRun struct {
	flags  *benchFlags
	server jobhost.Server
	run    string // begins the ids of its jobs, and is their label
	next   atomic.Int64
	again  atomic.Int64

	mu   sync.Mutex // protects the rest
	took []time.Duration
	acks []time.Time
}

const benchLabel = "bench"

func runRemoteBench(ctx context.Context, e *env, f *benchFlags) error {
	if err := f.checkRemote(); err != nil {
		return err
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := reach(ctx, server); err != nil {
		return err
	}
	r := &remoteRun{flags: f, server: server, run: strings.ToLower(rand.Text()[:8])}
	began := time.Now()
	producers := scope.New(ctx, "producers")
	for range f.producers {
		if err := producers.Go("producer", r.produce); err != nil {
			return err
		}
	}
	if _, err := producers.Join(ctx); err != nil {
		return err
	}
	if err := producers.Report().Err(); err != nil {
		if fault, ok := errors.AsType[*jobhost.Error](err); ok {
			return fault // all fail for the same, and which of them it was is no news
		}
		return err
	}
	if err := r.awaitEnds(ctx); err != nil {
		return err
	}
	report := r.report(time.Since(began))
	if e.wantsJSON() {
		return e.json(report)
	}
	report.print(e.stdout)
	return nil
}

// checkRemote refuses flags that are about a host in this process.
func (f *benchFlags) checkRemote() error {
	for _, flag := range []string{"batch", "backlog", "slots", "dir", "store", "sandbox", "processes", "relaxed", "memory", "sequential"} {
		if f.given(flag) {
			return usagef("--%s doesn't go with --addr, only --worker, --jobs, --producers and --payload do", flag)
		}
	}
	if !f.given("worker") {
		return usagef("--addr needs --worker, the name of a worker of that host: jobhost worker ls lists them")
	}
	return nil
}

// reach refuses an address at which there is no host to begin with: it is waited for only when it has answered once.
func reach(ctx context.Context, server jobhost.Server) error {
	_, err := server.Workers(ctx)
	if fault, ok := errors.AsType[*jobhost.Error](err); ok && fault.Code == jobhost.CodeUnavailable && fault.Field != jobhost.FieldURL {
		return nil // it will lead, or another one
	}
	return err
}

func (r *remoteRun) produce(ctx context.Context) error {
	payload := []byte(strings.Repeat("x", r.flags.payload))
	for {
		n := int(r.next.Add(1)) - 1
		if n >= r.flags.jobs {
			return nil
		}
		began := time.Now()
		err := r.submit(ctx, jobhost.Spec{
			ID: fmt.Sprintf("%s-%09d", r.run, n), Worker: r.flags.worker, Payload: payload, Labels: map[string]string{benchLabel: r.run},
		})
		if err != nil {
			return err
		}
		now := time.Now()
		r.mu.Lock()
		r.took, r.acks = append(r.took, now.Sub(began)), append(r.acks, now)
		r.mu.Unlock()
	}
}

// submit submits a job until that is acknowledged: its id makes that safe.
func (r *remoteRun) submit(ctx context.Context, spec jobhost.Spec) error {
	for began := time.Now(); ; r.again.Add(1) {
		_, err := r.server.Submit(ctx, spec)
		code := jobhost.CodeOf(err)
		if err == nil || ctx.Err() != nil || code != jobhost.CodeUnavailable && code != jobhost.CodeExhausted || time.Since(began) > patience {
			return err
		}
		wait := 50 * time.Millisecond
		if e, ok := errors.AsType[*jobhost.Error](err); ok {
			wait = max(wait, min(e.RetryAfter, time.Second))
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// awaitEnds waits until none of the jobs is open.
func (r *remoteRun) awaitEnds(ctx context.Context) error {
	for began := time.Now(); ; {
		open, err := r.anyOpen(ctx)
		if err == nil && !open || err != nil && (jobhost.CodeOf(err) != jobhost.CodeUnavailable || time.Since(began) > patience) {
			return err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// anyOpen looks for states in the order in which jobs go through them, so that none slips by.
func (r *remoteRun) anyOpen(ctx context.Context) (bool, error) {
	for _, state := range []jobhost.State{jobhost.Scheduled, jobhost.Held, jobhost.Retrying, jobhost.Ready, jobhost.Running} {
		page, err := r.server.Jobs(ctx, jobhost.Filter{Labels: map[string]string{benchLabel: r.run}, State: state, Limit: 1})
		if err != nil || len(page.Jobs) > 0 {
			return true, err
		}
	}
	return false, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *remoteRun) report(took time.Duration) remoteReport {
	slices.SortFunc(r.acks, time.Time.Compare)
	var gap time.Duration
	for i := 1; i < len(r.acks); i++ {
		gap = max(gap, r.acks[i].Sub(r.acks[i-1]))
	}
	return remoteReport{
		Jobs: r.flags.jobs, Producers: r.flags.producers, Worker: r.flags.worker, Seconds: took.Seconds(),
		JobsPerSecond: float64(len(r.acks)) / took.Seconds(), Submit: times(r.took), Gap: millis(gap), Repeated: r.again.Load(),
	}
}

func (r *remoteReport) print(w io.Writer) {
	row := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%-16s"+format+"\n", append([]any{name}, args...)...)
	}
	row("durable jobs", "%.0f/s (%d in %.2f s)", r.JobsPerSecond, r.Jobs, r.Seconds)
	row("submit", "p50 %.2f ms, p99 %.2f ms, max %.2f ms", r.Submit.P50, r.Submit.P99, r.Submit.Max)
	row("longest gap", "%.0f ms between acknowledgements, %d submits sent again", r.Gap, r.Repeated)
	row("with", "%d producers, worker %s", r.Producers, r.Worker)
}
