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

// handleSignals returns a service that reloads the host at each SIGHUP, if that is
// what it means, and logs how it stands at each SIGUSR1. Signals count from now on: unheeded, either
// would end the process. Those that come while one is dealt with are one more.
func handleSignals(logger *slog.Logger, hangup bool) (orders service, forget func()) {
	reload, tell := make(chan os.Signal, 1), make(chan os.Signal, 1)
	if hangup {
		signal.Notify(reload, syscall.SIGHUP)
	}
	signal.Notify(tell, syscall.SIGUSR1)
	orders = func(ctx context.Context, h *readyHost) error {
		for {
			select {
			case <-reload:
				reloadHost(ctx, h, logger)
			case <-tell:
				logStatus(ctx, h, logger)
			case <-ctx.Done():
				return nil
			}
		}
	}
	return orders, func() {
		signal.Stop(reload)
		signal.Stop(tell)
	}
}

// reloadHost loads the manifest anew and logs what came of it: one line for
// each fault, and otherwise what the host did not log itself.
func reloadHost(ctx context.Context, h *readyHost, logger *slog.Logger) {
	report, err := h.Reload(ctx, "")
	if ctx.Err() != nil {
		return // the host stops, which is no fault of the manifest
	}
	for _, fault := range split(err) {
		attrs := []any{logkey.Error, fault}
		if hint := jobhost.HintOf(fault); hint != "" {
			attrs = append(attrs, logkey.Hint, hint)
		}
		logger.Error("reload refused; what ran runs on", attrs...)
	}
	if err == nil {
		logReload(report, logger)
	}
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
