package host

import (
	"context"
	"errors"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/effect"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// settled feeds the metrics with an attempt that ended.
func (h *Host) settled(s queue.Settlement) {
	h.metricsOf(s.Worker).JobDone(s.Outcome, s.State, s.Waited, s.Ran)
	if s.LogDropped > 0 {
		h.cfg.Metrics.LimitHit(metrics.LimitLog)
	}
	if s.Failure == nil {
		return
	}
	switch s.Failure.Code {
	case jobhost.FailOutputTooLarge:
		h.cfg.Metrics.LimitHit(metrics.LimitOutput)
	case jobhost.FailInputTooLarge:
		h.cfg.Metrics.LimitHit(metrics.LimitMemory)
	case jobhost.FailTimeout:
		h.cfg.Metrics.LimitHit(metrics.LimitTime)
	case jobhost.FailFuel:
		h.cfg.Metrics.LimitHit(metrics.LimitFuel)
	case jobhost.FailLimit:
		h.cfg.Metrics.LimitHit(metrics.LimitEffects)
	case jobhost.FailStack:
		h.cfg.Metrics.LimitHit(metrics.LimitStack)
	}
}

// hitEffects counts a limit that the effects of an attempt have hit.
func (h *Host) hitEffects(l effect.Limit) {
	h.cfg.Metrics.LimitHit(map[effect.Limit]metrics.Limit{
		effect.LimitChanges:  metrics.LimitEffects,
		effect.LimitQuota:    metrics.LimitKVQuota,
		effect.LimitChildren: metrics.LimitChildren,
		effect.LimitQueue:    metrics.LimitQueue,
	}[l])
}

// metricsOf returns the metrics of a worker, also of one that was removed and
// whose last tasks still run, and before the host runs.
func (h *Host) metricsOf(worker string) *metrics.Worker {
	if r := h.running.Load(); r != nil && r.workers()[worker] != nil {
		return r.workers()[worker].metrics
	}
	return h.cfg.Metrics.Worker(worker)
}

// countRefusal counts a submit that met a limit.
func (h *Host) countRefusal(err error) {
	switch jobhost.CodeOf(err) {
	case jobhost.CodeExhausted:
		h.cfg.Metrics.LimitHit(metrics.LimitQueue)
	case jobhost.CodeUnavailable:
		if e, ok := errors.AsType[*jobhost.Error](err); ok && e.Field == jobhost.FieldDisk {
			h.cfg.Metrics.LimitHit(metrics.LimitDisk)
		}
	case jobhost.CodeTooLarge:
		h.cfg.Metrics.LimitHit(metrics.LimitPayload)
	}
}

// QueueStats implements [metrics.Source].
func (h *Host) QueueStats() []metrics.WorkerStats {
	r := h.running.Load()
	if r == nil {
		return nil
	}
	kept, err := h.cfg.Store.Counts(context.Background())
	if err != nil {
		h.cfg.Logger.Warn("tasks can't be counted", logkey.Error, err)
	}
	all := make([]metrics.WorkerStats, 0, len(r.workers()))
	for name, w := range r.workers() {
		stats := r.Queue.Stats(name)
		all = append(all, metrics.WorkerStats{
			Worker: name,
			Tasks: metrics.StateLevels{
				jobhost.Scheduled: int64s(stats.Scheduled),
				jobhost.Ready:     int64s(stats.Ready),
				jobhost.Held:      int64s(stats.Held),
				jobhost.Running:   int64s(stats.Running),
				jobhost.Retrying:  int64s(stats.Retrying),
			},
			Oldest: stats.OldestReady,

			Breaker: r.Queue.Breaker(name),

			Slots: w.pool.Size(),
			Busy:  w.pool.Busy(),
			Dead:  kept[name][record.Dead],
		})
	}
	return all
}

func int64s(counts [jobhost.Levels]int) (out [jobhost.Levels]int64) {
	for level, n := range counts {
		out[level] = int64(n)
	}
	return out
}
