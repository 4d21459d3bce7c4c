package host

import (
	"errors"

	"github.com/jobhost/jobhost/host/manifest"
)

// FromManifest returns the configuration that a manifest asks for and reads
// the plugins' files. Store, Engine, Metrics and Logger are for the caller to
// fill in. All files that can't be read are reported at once.
func FromManifest(m *manifest.Manifest) (Config, error) {
	cfg := Config{
		MaxRunning:      m.Host.MaxRunning,
		MaxPayload:      m.Host.MaxPayload,
		Aging:           m.Host.Aging,
		ShutdownTimeout: m.Host.ShutdownTimeout,
		CancelGrace:     m.Host.CancelGrace,
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
	return cfg, errors.Join(errs...)
}

// WorkerFromManifest returns the configuration of one worker and reads its
// plugin's file.
func WorkerFromManifest(m *manifest.Manifest, w *manifest.Worker) (Worker, error) {
	plugin, err := m.ReadPlugin(w)
	secrets := make(map[string]string, len(w.Secrets))
	for name, secret := range w.Secrets {
		secrets[name] = secret.Reveal()
	}
	return Worker{
		Name:          w.Name,
		Path:          w.Plugin,
		Plugin:        plugin,
		Entry:         w.Entry,
		PoolSize:      w.PoolSize,
		QueueCapacity: w.QueueCapacity,
		Limits:        w.Limits,
		Retry:         w.Retry,
		Config:        w.Config,
		Secrets:       secrets,
	}, err
}
