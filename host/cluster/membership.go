package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// Times of membership.
const (
	beatTime  = time.Second            // between heartbeats, which also read the other hosts and wishes
	dbTimeout = 2 * time.Second        // timeout of a query
	nameTime  = 2 * pgdb.LostTime      // how long a host waits for its name, which a killed one may still have
	nameRetry = 250 * time.Millisecond // how often it tries meanwhile
)

// row returns the row of this host.
func (m *Member) row() pgdb.Host {
	h := pgdb.Host{Name: m.cfg.Name, Address: m.address, Key: m.identity.public, Version: m.cfg.Version, MayLead: !m.cfg.StandBy && !m.isRetired(), Former: m.folder.formerOf()}
	if m.cfg.Load != nil {
		h.Slots, h.Busy = m.cfg.Load()
	}
	return h
}

// join adds the row of this host. It waits while the row of a killed host still has its name.
func (m *Member) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, nameTime)
	defer cancel()
	for taken := false; ; {
		mine, err := m.renew(ctx)
		if mine {
			m.joined.Store(true)
			return nil
		}
		taken = taken || err == nil
		if sleep(ctx, nameRetry) {
			continue
		}
		switch {
		case !errors.Is(ctx.Err(), context.DeadlineExceeded):
			return context.Cause(ctx)
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return err
		case !taken: // the end of the wait cuts the last query short, so its error says nothing
			return &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "join the cluster: the database does not answer", Cause: err}
		}
		return &jobhost.Error{
			Code: jobhost.CodeConflict, Field: "cluster.name", Message: fmt.Sprintf("another host of the name %q is alive", m.cfg.Name),
			Hint: "give this one another name in [cluster]",
		}
	}
}

// renew is a heartbeat: it renews the row of this host and reads those of the others. mine = the row is this host's.
func (m *Member) renew(ctx context.Context) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, dbTimeout)
	defer cancel()
	began := time.Now()
	hosts, err := m.cfg.DB.Beat(ctx, m.row())
	if err != nil {
		return false, err
	}
	m.keys.learn(hosts, began)
	m.heard(hosts, began)
	m.wake()
	own := find(hosts, m.cfg.Name)
	return own != nil && bytes.Equal(own.Key, m.identity.public), nil
}

// heard takes in which hosts there are, unless a newer answer of the database is known. It was asked for this one at a time.
func (m *Member) heard(hosts []pgdb.Host, asked time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if asked.After(m.asked) {
		m.hosts, m.asked = hosts, asked
	}
}

// beat makes a heartbeat each second until ctx ends.
func (m *Member) beat(ctx context.Context) {
	for sleep(ctx, beatTime) {
		mine, err := m.renew(ctx)
		if err == nil && !mine {
			err = fmt.Errorf("another host has the name %q", m.cfg.Name)
		}
		if ctx.Err() != nil {
			return
		}
		m.mu.Lock()
		changed := m.lost != (err != nil)
		m.lost = err != nil
		m.mu.Unlock()
		switch {
		case changed && err != nil:
			m.log.Warn("renew the row of this host", logkey.Error, err)
		case changed:
			m.log.Info("the row of this host is renewed again")
		}
	}
}

// leave removes the row of this host, so that its name is free at once.
func (m *Member) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, dbTimeout)
	defer cancel()
	if err := m.cfg.DB.Leave(ctx, m.cfg.Name, m.identity.public); err != nil {
		m.log.Warn("leave the cluster", logkey.Error, err)
	}
}

func find(hosts []pgdb.Host, name string) *pgdb.Host {
	for i := range hosts {
		if hosts[i].Name == name {
			return &hosts[i]
		}
	}
	return nil
}

// canLead reports whether a host could lead.
func canLead(h *pgdb.Host) bool { return h.MayLead && !h.Drained && h.Seen < pgdb.LostTime }

// HasSuccessor reports whether another host could take over if this one gave up its term.
func (m *Member) HasSuccessor() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.successor(m.hosts) != ""
}

// successor returns the name of another host that could lead; empty = there is none.
func (m *Member) successor(hosts []pgdb.Host) string {
	for i := range hosts {
		if hosts[i].Name != m.cfg.Name && canLead(&hosts[i]) {
			return hosts[i].Name
		}
	}
	return ""
}

// wanted returns the name of the host that was asked to lead, if it can; empty = there is none.
func wanted(hosts []pgdb.Host) string {
	for i := range hosts {
		if hosts[i].Wanted && canLead(&hosts[i]) {
			return hosts[i].Name
		}
	}
	return ""
}

// stepDownReason returns why this host has to give up its term; empty = it doesn't have to.
func (m *Member) stepDownReason() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.retired {
		return "it is to end"
	}
	if name := wanted(m.hosts); name != "" && name != m.cfg.Name {
		return name + " was asked to lead"
	}
	own, next := find(m.hosts, m.cfg.Name), m.successor(m.hosts)
	if own != nil && own.Drained && next != "" {
		return "it was drained"
	}
	return ""
}

func (m *Member) isRetired() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.retired
}

// mayLead reports whether this host may take over: not if another one was asked to lead, and not after a drain, unless no other
// host can lead.
func (m *Member) mayLead(hosts []pgdb.Host) bool {
	own := find(hosts, m.cfg.Name)
	if m.cfg.StandBy || m.isRetired() || own != nil && own.Drained && m.successor(hosts) != "" {
		return false
	}
	name := wanted(hosts)
	return name == "" || name == m.cfg.Name
}
