package main

import (
	"errors"
	"path/filepath"

	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/crash"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/internal/logkey"
)

// watchCrashes lets a host find out how the one before it has ended, and what ran then,
// by files in the folder of its store, of which it has the lock. A store in memory has
// none, and nothing to find. over says that the host was stopped: it is not deferred,
// since a panic would call it too.
func watchCrashes(cfg *host.Config, dir string) (over func() error) {
	if dir == "" {
		return func() error { return nil }
	}
	var err error
	missed := func() { cfg.Metrics.LimitHit(metrics.LimitJournal) }
	if cfg.Journal, err = journal.Open(filepath.Join(dir, journal.FileName), missed); err != nil {
		cfg.Logger.Warn("what runs can't be noted: a job that ends the host will do so at each start", logkey.Error, err)
		return func() error { return nil }
	}
	if cfg.Crash, err = crash.Open(dir, cfg.Journal, cfg.Logger); err != nil {
		cfg.Logger.Warn("what ends the host can't be found out", logkey.Error, err)
	}
	return func() error { return errors.Join(cfg.Crash.Close(), cfg.Journal.Close()) }
}
