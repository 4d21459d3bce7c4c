package main

import (
	"context"

	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/internal/logkey"
)

// This file has what a host does while it stands by, so that it can lead at any time.

func (c *clustered) following(string) {
	select {
	case c.standsBy <- struct{}{}:
	default: // it is about to
	}
}

// warm compiles the plugins when this host stands by, so that it leads without delay.
func (c *clustered) warm(ctx context.Context) {
	for {
		select {
		case <-c.standsBy:
		case <-ctx.Done():
			return
		}
		_, cfg, err := c.current()
		if err != nil {
			c.logger.Warn("read the plugins; this host could not lead now", logkey.Error, err)
			continue
		}
		for i := range cfg.Workers {
			if w := &cfg.Workers[i]; c.leads.Load() == nil && ctx.Err() == nil {
				c.compile(ctx, w)
			}
		}
	}
}

func (c *clustered) compile(ctx context.Context, w *host.Worker) {
	plugin, err := c.engine.Load(ctx, w.Source())
	if err == nil {
		err = plugin.Close(context.WithoutCancel(ctx))
	}
	if err != nil && ctx.Err() == nil {
		c.logger.Warn("load a worker; this host could not lead now", logkey.Worker, w.Name, logkey.Error, err)
	}
}

// current returns the manifest as it is now, since the leader before may have reloaded it. If it has faults the last one without
// is used, so that the host can lead.
func (c *clustered) current() (*manifest.Manifest, host.Config, error) {
	m, cfg, err := c.read()
	if err == nil {
		return m, cfg, nil
	}
	c.logger.Warn("the manifest has faults; the host goes on with what it said before", logkey.Error, err)
	if m = c.checked.Load(); m == nil {
		m = c.manifest
	}
	cfg, err = host.FromManifest(m)
	return m, cfg, err
}

// read reads the manifest and the plugins.
func (c *clustered) read() (*manifest.Manifest, host.Config, error) {
	m, err := c.manifest.Again(c.env.manifestPath())
	if err != nil {
		return nil, host.Config{}, err
	}
	cfg, err := host.FromManifest(m)
	if err != nil {
		return nil, host.Config{}, err
	}
	for _, name := range c.manifest.Changed(m) {
		c.logger.Warn("the setting takes effect when the host is started anew", logkey.Setting, name)
	}
	c.checked.Store(m)
	return m, cfg, nil
}

// reload reloads the host if it leads, and otherwise checks the manifest that it will run when it does.
func (c *clustered) reload(ctx context.Context) {
	if h := c.leading(ctx); h != nil {
		reloadHost(ctx, h, c.logger)
		return
	}
	if _, _, err := c.read(); err != nil {
		for _, fault := range split(err) {
			c.logger.Error("the manifest has faults; if this host leads it goes on with what it said before", faultAttrs(fault)...)
		}
		return
	}
	c.logger.Info("the manifest has no faults; this host runs what it says when it leads")
	c.following("") // compiles what is new
}

// logState logs whether the host leads, and if so how its workers are.
func (c *clustered) logState(ctx context.Context) {
	if h := c.leading(ctx); h != nil {
		logStatus(ctx, h, c.logger)
		return
	}
	c.logger.Info("status", logkey.State, "stands by")
}

// leading waits until the host is ready if it leads, and returns it; nil = it stands by.
func (c *clustered) leading(ctx context.Context) *readyHost {
	h := c.leads.Load()
	if h == nil {
		return nil
	}
	server, err := h.AwaitReady(ctx)
	if err != nil {
		return nil
	}
	return &readyHost{h, server}
}
