package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// This file has what the API answers about the hosts of a cluster, and the API's token, which they share.

// Hosts implements [jobhost.Cluster].
func (c *clustered) Hosts(ctx context.Context) ([]jobhost.HostStatus, error) {
	list, err := c.member.Hosts(ctx)
	hosts := make([]jobhost.HostStatus, len(list))
	for i := range list {
		h := &list[i]
		hosts[i] = jobhost.HostStatus{
			Name: h.Name, Role: h.Role, Epoch: h.Epoch, Address: h.Address, Version: h.Version, Slots: h.Slots, Busy: h.Busy,
			MayLead: h.MayLead, Wanted: h.Wanted, Since: h.Since.UTC(), Seen: jobhost.Duration(h.Seen),
		}
	}
	return hosts, err
}

// DrainHost implements [jobhost.Cluster].
func (c *clustered) DrainHost(ctx context.Context, name string) (jobhost.HostStatus, error) {
	return c.asked(ctx, name, c.member.Drain)
}

// LeadHost implements [jobhost.Cluster].
func (c *clustered) LeadHost(ctx context.Context, name string) (jobhost.HostStatus, error) {
	return c.asked(ctx, name, c.member.AskToLead)
}

func (c *clustered) asked(ctx context.Context, name string, ask func(context.Context, string) error) (jobhost.HostStatus, error) {
	if err := ask(ctx, name); err != nil {
		return jobhost.HostStatus{}, err
	}
	hosts, err := c.Hosts(ctx)
	for i := range hosts {
		if hosts[i].Name == name {
			return hosts[i], nil
		}
	}
	return jobhost.HostStatus{}, err
}

// sharedToken returns the token of the API that all hosts of a cluster have: that in the token file of the first host. The others
// write it to their files, where commands look for it.
func sharedToken(ctx context.Context, db *pgdb.DB, path string, logger *slog.Logger) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("create token: %w", err)
	}
	own, err := api.LoadOrCreateToken(path)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	shared, err := db.Secret(ctx, "token", []byte(own))
	if err != nil {
		return "", err
	}
	token := string(shared)
	if err := api.CheckToken(token); err != nil {
		return "", fmt.Errorf("read token from the database: %w", err)
	}
	if token != own {
		logger.Warn("the token file gets the token of the cluster in place of its own; to change that of the cluster see docs/cluster.md", logkey.Path, path)
		if err := os.WriteFile(path, append(shared, '\n'), 0o600); err != nil {
			return "", fmt.Errorf("write token: %w", err)
		}
	}
	return token, nil
}
