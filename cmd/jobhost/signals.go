package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/internal/logkey"
)

// untilSignal returns a context that ends with the first of the signals. A
// second one ends the process.
func untilSignal(ctx context.Context, logger *slog.Logger, ends ...os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, ends...)
	watch := scope.New(context.WithoutCancel(ctx), "signals")
	_ = watch.Go("signals", func(end context.Context) error {
		for n := 0; ; n++ {
			select {
			case s := <-signals:
				if n > 0 {
					logger.Error("second signal: stopping at once", logkey.Signal, s.String())
					os.Exit(1)
				}
				logger.Info("stopping", logkey.Signal, s.String())
				cancel(fmt.Errorf("signal %s", s))
			case <-end.Done():
				return nil
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		watch.Cancel(nil)
		cancel(nil)
	}
}

// orders are signals that a host takes while it runs: SIGHUP, if that is what it means, and SIGUSR1. They count from now
// on: unheeded, either would end the process. Those that come while one is dealt with are one more.
type orders struct {
	reload, tell chan os.Signal
	logger       *slog.Logger
}

func takeOrders(logger *slog.Logger, hangup bool) *orders {
	o := &orders{reload: make(chan os.Signal, 1), tell: make(chan os.Signal, 1), logger: logger}
	if hangup {
		signal.Notify(o.reload, syscall.SIGHUP)
	}
	signal.Notify(o.tell, syscall.SIGUSR1)
	return o
}

func (o *orders) forget() {
	signal.Stop(o.reload)
	signal.Stop(o.tell)
}

// obey calls one of the functions for each order until ctx ends.
func (o *orders) obey(ctx context.Context, reload, tell func()) {
	for {
		select {
		case <-o.reload:
			reload()
		case <-o.tell:
			tell()
		case <-ctx.Done():
			return
		}
	}
}

// serve is a service that reloads the host, and logs how it stands.
func (o *orders) serve(ctx context.Context, h *readyHost) error {
	o.obey(ctx, func() { reloadHost(ctx, h, o.logger) }, func() { logStatus(ctx, h, o.logger) })
	return nil
}

// reloadHost loads the manifest anew and logs what came of it: one line for
// each fault, and otherwise what the host did not log itself.
func reloadHost(ctx context.Context, h *readyHost, logger *slog.Logger) {
	report, err := h.Reload(ctx, "")
	if ctx.Err() != nil {
		return // the host stops, which is no fault of the manifest
	}
	for _, fault := range split(err) {
		logger.Error("reload refused; what ran runs on", faultAttrs(fault)...)
	}
	if err == nil {
		logReload(report, logger)
	}
}

func faultAttrs(fault error) []any {
	attrs := []any{logkey.Error, fault}
	if hint := jobhost.HintOf(fault); hint != "" {
		attrs = append(attrs, logkey.Hint, hint)
	}
	return attrs
}

func logReload(report jobhost.Reload, logger *slog.Logger) {
	for _, setting := range report.NeedsRestart {
		logger.Warn("setting has changed; it needs a restart", logkey.Setting, setting)
	}
	changed := 0
	for _, w := range report.Workers {
		if w.Change != jobhost.WorkerUnchanged {
			changed++
		}
	}
	logger.Info("reloaded", "changed", changed, logkey.Count, len(report.Workers))
}

// logStatus logs how host and workers stand.
func logStatus(ctx context.Context, h *readyHost, logger *slog.Logger) {
	logger.Info("status", logkey.State, h.State().String())
	workers, err := h.Workers(ctx)
	if err != nil {
		logger.Error("workers can't be listed", logkey.Error, err)
	}
	for i := range workers {
		w := &workers[i]
		attrs := []any{
			logkey.Worker, w.Name, logkey.SHA256, w.SHA256[:min(len(w.SHA256), 12)], logkey.Load, w.Version,
			"busy", w.Busy, "slots", w.Slots,
		}
		for _, s := range jobhost.States() {
			if n := w.Tasks[s.String()]; n > 0 {
				attrs = append(attrs, s.String(), n)
			}
		}
		logger.Info("worker status", attrs...)
	}
}
