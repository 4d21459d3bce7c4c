package main

import (
	"fmt"
	"io"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/jobhost/jobhost/internal/version"
)

// benchTimes are times in milliseconds.
type benchTimes struct {
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// benchReport is what bench prints.
type benchReport struct {
	Jobs            int        `json:"jobs"`
	Producers       int        `json:"producers"`
	Batch           int        `json:"batch"`
	Slots           int        `json:"slots"`
	Backlog         int        `json:"backlog"`
	PayloadBytes    int        `json:"payload_bytes"`
	Worker          string     `json:"worker"`
	Durability      string     `json:"durability"`
	Seconds         float64    `json:"seconds"`
	Ended           int64      `json:"ended"` // jobs, those of the backlog included
	Failed          int64      `json:"failed"`
	JobsPerSecond   float64    `json:"jobs_per_second"`
	Submit          benchTimes `json:"submit"`
	Done            benchTimes `json:"submit_to_done"`
	Commits         int64      `json:"commits"`
	BatchMean       float64    `json:"operations_per_commit"`
	CommitMean      float64    `json:"commit_mean_ms"`
	Ready           float64    `json:"start_to_ready_ms"`
	BytesPerWaiting float64    `json:"bytes_per_waiting_job"`
	Version         string     `json:"version"`
	Machine         string     `json:"machine"`
}

func (b *benchRun) report(took time.Duration, ended int64) benchReport {
	return benchReport{
		Jobs:            b.flags.jobs,
		Producers:       b.flags.producers,
		Batch:           b.flags.batch,
		Slots:           b.worker.PoolSize,
		Backlog:         b.flags.backlog,
		PayloadBytes:    b.flags.payload,
		Worker:          b.worker.Name,
		Seconds:         took.Seconds(),
		Ended:           ended,
		Failed:          b.failed.Load(),
		JobsPerSecond:   float64(ended) / took.Seconds(),
		Submit:          times(b.submitted),
		Done:            times(b.done),
		Ready:           millis(b.ready),
		BytesPerWaiting: b.bytesPerWaiting,
		Version:         version.Get().String(),
		Machine:         fmt.Sprintf("%s/%s, %d CPUs, %s", goruntime.GOOS, goruntime.GOARCH, goruntime.NumCPU(), goruntime.Version()),
	}
}

// times sorts the durations and picks some.
func times(d []time.Duration) benchTimes {
	if len(d) == 0 {
		return benchTimes{}
	}
	slices.Sort(d)
	at := func(part float64) float64 { return millis(d[min(int(part*float64(len(d))), len(d)-1)]) }
	return benchTimes{P50: at(0.5), P99: at(0.99), Max: at(1)}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (r *benchReport) print(w io.Writer) {
	row := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%-16s"+format+"\n", append([]any{name}, args...)...)
	}
	row("durable jobs", "%.0f/s (%d in %.2f s, %d failed)", r.JobsPerSecond, r.Ended, r.Seconds, r.Failed)
	if r.Jobs > 0 {
		row("submit", "p50 %.2f ms, p99 %.2f ms, max %.2f ms", r.Submit.P50, r.Submit.P99, r.Submit.Max)
		row("submit to done", "p50 %.2f ms, p99 %.2f ms, max %.2f ms", r.Done.P50, r.Done.P99, r.Done.Max)
	}
	row("commits", "%d, %.1f operations each, %.2f ms each", r.Commits, r.BatchMean, r.CommitMean)
	row("start to ready", "%.0f ms", r.Ready)
	if r.Backlog > 0 {
		row("backlog", "%d jobs, %.0f bytes of memory each", r.Backlog, r.BytesPerWaiting)
	}
	row("with", "%d producers, %d per submit, %d slots, worker %s, %d bytes of payload", r.Producers, r.Batch, r.Slots, r.Worker, r.PayloadBytes)
	row("durability", "%s", r.Durability)
	row("jobhost", "%s", r.Version)
	row("machine", "%s", r.Machine)
}
