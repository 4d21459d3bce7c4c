package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/schedule"
)

// FromManifest returns the configuration that a manifest asks for and reads
// the plugins' files. Store, Engine, Metrics and Logger are for the caller to
// fill in. All files that can't be read are reported at once.
func FromManifest(m *manifest.Manifest) (Config, error) {
	cfg := Config{
		MaxRunning:      m.Host.MaxRunning,
		MaxMemory:       m.Host.MaxMemory,
		MaxPayload:      m.Host.MaxPayload,
		MaxUpload:       m.Payload.Max,
		OrphanAge:       m.Payload.OrphanAge,
		MinFree:         m.Host.MinFree,
		Aging:           m.Host.Aging,
		ShutdownTimeout: m.Host.ShutdownTimeout,
		CancelGrace:     m.Host.CancelGrace,

		PayloadThreshold: m.Payload.Threshold,
	}
	if cfg.Aging == 0 {
		cfg.Aging = -1 // "off"
	}
	var errs []error
	for i := range m.Workers {
		w, err := WorkerFromManifest(m, &m.Workers[i])
		errs = append(errs, err)
		cfg.Workers = append(cfg.Workers, w)
	}
	for i := range m.Schedules {
		s, err := ScheduleFromManifest(m, &m.Schedules[i])
		errs = append(errs, err)
		cfg.Schedules = append(cfg.Schedules, s)
	}
	cfg.Fibers = Fibers{
		Max: m.Fibers.Max, FailWhenFull: m.Fibers.WhenFull == manifest.FailWhenFull,
		InputMessages: m.Fibers.Input, InputBytes: m.Fibers.InputBytes, Replay: m.Fibers.Replay, History: m.Fibers.History,
	}
	if cfg.Fibers.Replay == 0 {
		cfg.Fibers.Replay = -1 // none
	}
	for i := range m.FiberList {
		f, err := FiberFromManifest(m, &m.FiberList[i])
		errs = append(errs, err)
		cfg.Fibers.Start = append(cfg.Fibers.Start, f)
	}
	cfg.Workflows = Workflows{
		Definitions: append([]jobhost.Workflow{}, m.Workflows...), // not nil, which a reload takes for what was there before
		MaxOpen:     m.WorkflowSettings.MaxOpen, MaxNesting: m.WorkflowSettings.MaxNesting,
		Retention: &m.WorkflowSettings.Retention,
	}
	if m.Webhook != nil {
		cfg.Webhook = &m.Webhook.Settings
	}
	return cfg, errors.Join(errs...)
}

// ScheduleFromManifest returns the schedule that a manifest asks for and reads
// the file of its payload.
func ScheduleFromManifest(m *manifest.Manifest, s *manifest.Schedule) (schedule.Schedule, error) {
	timing, err := s.Timing()
	if err != nil {
		return schedule.Schedule{}, fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	payload, err := m.ReadPayload(s)
	if err != nil {
		return schedule.Schedule{}, fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	return schedule.Schedule{
		Name:        s.Name,
		Description: s.Description,
		Timing:      timing,
		Job: jobhost.Spec{
			Worker: s.Worker, Payload: payload, ContentType: s.ContentType, Entry: s.Entry, Priority: s.Priority,
			Tasks: s.Tasks, MaxAttempts: s.MaxAttempts, Timeout: s.Timeout, Labels: s.Labels,
		},
		Jitter:       s.Jitter,
		CatchUp:      s.CatchUp,
		CatchUpLimit: s.CatchUpLimit,
		Overlap:      s.Overlap,
	}, nil
}

// FiberFromManifest returns the fiber that a manifest asks for and reads the file of
// what it begins with.
func FiberFromManifest(m *manifest.Manifest, f *manifest.Fiber) (jobhost.FiberSpec, error) {
	init, err := m.ReadInit(f)
	if err != nil {
		return jobhost.FiberSpec{}, fmt.Errorf("fiber %s: %w", f.ID, err)
	}
	return jobhost.FiberSpec{ID: f.ID, Worker: f.Worker, Entry: f.Entry, Init: init, Labels: f.Labels, Restart: f.Restart}, nil
}

// WorkerFromManifest returns the configuration of one worker and reads its
// plugin's file.
func WorkerFromManifest(m *manifest.Manifest, w *manifest.Worker) (Worker, error) {
	secrets := make(map[string]string, len(w.Secrets))
	for name, secret := range w.Secrets {
		secrets[name] = secret.Reveal()
	}
	worker := w.Worker
	worker.Secrets = secrets
	if w.HTTP != nil {
		worker.HTTP = &w.HTTP.HTTP
	}
	plugin, err := m.ReadPlugin(w)
	if err == nil {
		err = SetPlugin(&worker, plugin)
	}
	return worker, err
}

// Rereader returns the [Config.Reread] of a host that was started from the
// manifest: it loads the file at path again. What [host] says is for a start to
// take up: what differs is named. Its errors say where in the file the faults are.
func Rereader(path string, started *manifest.Manifest) func(context.Context) (Update, error) {
	return func(context.Context) (Update, error) {
		m, err := started.Again(path)
		if err != nil {
			return Update{}, located(err)
		}
		cfg, err := FromManifest(m)
		if err != nil {
			return Update{}, err
		}
		return Update{
			Workers: cfg.Workers, Schedules: cfg.Schedules, Webhook: cfg.Webhook, Fibers: cfg.Fibers.Start,
			Workflows: cfg.Workflows.Definitions, NeedsRestart: started.Changed(m),
		}, nil
	}
}

// located puts the places of a manifest's faults into their messages, since
// those are all that travels over HTTP.
func located(err error) error {
	faults, ok := errors.AsType[manifest.Faults](err)
	if !ok {
		return err
	}
	errs := make([]error, len(faults))
	for i, f := range faults {
		plain := *f
		plain.Hint = "" // it stands beside the message
		errs[i] = &jobhost.Error{Code: jobhost.CodeInvalid, Field: f.Key, Message: plain.Error(), Hint: f.Hint}
	}
	return errors.Join(errs...)
}
