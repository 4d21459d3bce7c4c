package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// Listed is a host in a list.
type Listed struct {
	pgdb.Host
	Role jobhost.HostRole
	// Epoch is that of the term in which it leads, or led if no other host has led since; otherwise 0.
	Epoch int64
}

// Hosts returns all hosts with a heartbeat within the last day, by name.
func (m *Member) Hosts(ctx context.Context) ([]Listed, error) { return List(ctx, m.cfg.DB) }

// List returns all hosts of a cluster with a heartbeat within the last day, by name.
func List(ctx context.Context, db *pgdb.DB) ([]Listed, error) {
	hosts, err := db.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	l, err := db.Leader(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Listed, len(hosts))
	for i, h := range hosts {
		list[i] = Listed{Host: h, Role: jobhost.HostStandsBy}
		leads := h.Name == l.Host
		if leads {
			list[i].Epoch = l.Epoch
		}
		switch {
		case leads && l.Vacant(db.Lease()) == "":
			list[i].Role = jobhost.HostLeads
		case h.Seen >= pgdb.LostTime:
			list[i].Role = jobhost.HostLost
		case h.Drained:
			list[i].Role = jobhost.HostDrained
		}
	}
	return list, nil
}

// Drain asks a host not to lead any more, until it is restarted or asked to lead. Errors: not_found; conflict when no other
// host could lead.
func (m *Member) Drain(ctx context.Context, name string) error {
	hosts, err := m.cfg.DB.Hosts(ctx)
	if err != nil {
		return err
	}
	other := false
	for i := range hosts {
		other = other || hosts[i].Name != name && canLead(&hosts[i])
	}
	switch {
	case find(hosts, name) == nil:
		return errNoHost(name)
	case !other:
		return &jobhost.Error{
			Code: jobhost.CodeConflict, Field: "name", Message: fmt.Sprintf("no other host could lead after %q", name),
			Hint: "start another one first; to stop the host, end its process",
		}
	}
	found, err := m.cfg.DB.Drain(ctx, name)
	m.notifyLeader(ctx)
	return orNoHost(found, err, name)
}

// AskToLead asks a host to lead: the leader gives up its term, and the host takes over. Errors: not_found; conflict for a host
// that is lost, or whose manifest keeps it from leading.
func (m *Member) AskToLead(ctx context.Context, name string) error {
	hosts, err := m.cfg.DB.Hosts(ctx)
	if err != nil {
		return err
	}
	h := find(hosts, name)
	switch {
	case h == nil:
		return errNoHost(name)
	case !h.MayLead:
		return &jobhost.Error{Code: jobhost.CodeConflict, Field: "name", Message: fmt.Sprintf("the manifest of %q keeps it from leading", name), Hint: "remove lead = false from [cluster] there"}
	case h.Seen >= pgdb.LostTime:
		return &jobhost.Error{
			Code: jobhost.CodeConflict, Field: "name", Message: fmt.Sprintf("%q was not heard of for %v", name, h.Seen.Round(1e9)),
			Hint: "it can't lead: is it running, and does it reach the database?",
		}
	}
	found, err := m.cfg.DB.Want(ctx, name)
	m.notifyLeader(ctx)
	return orNoHost(found, err, name)
}

// notifyTimeout is how long notifyLeader waits.
const notifyTimeout = 500 * time.Millisecond

// notifyLeader makes the leader look at drains and wishes now. If it can't be reached it does so at its next heartbeat.
func (m *Member) notifyLeader(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	r, _ := m.front.now()
	if r == nil || r.peer == nil {
		m.refreshHosts(ctx)
		return
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+r.peer.address+lookPath, http.NoBody)
	if err != nil {
		return
	}
	if resp, err := r.peer.transport.RoundTrip(request); err == nil {
		_ = resp.Body.Close()
	}
}

// refreshHosts reads the hosts now, instead of at the next heartbeat.
func (m *Member) refreshHosts(ctx context.Context) {
	if _, err := m.renew(ctx); err != nil && ctx.Err() == nil {
		m.log.Warn("look which hosts there are", logkey.Error, err)
	}
}

func orNoHost(found bool, err error, name string) error {
	if err == nil && !found {
		return errNoHost(name)
	}
	return err
}

func errNoHost(name string) error {
	return &jobhost.Error{
		Code: jobhost.CodeNotFound, Field: "name", Message: fmt.Sprintf("there is no host of the name %q", name), Hint: "jobhost host ls lists the hosts",
	}
}

// Status is what this host knows of the cluster without a query.
type Status struct {
	Leading  bool
	Epoch    int64
	LeaseAge time.Duration
	// Standbys is how many other hosts are alive, if this one leads.
	Standbys int
	// Reaches is whether requests can be answered: see [Member.Ready].
	Reaches bool
}

// Status returns what this host knows of the cluster.
func (m *Member) Status() Status {
	s := Status{Reaches: m.Ready() == nil}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.term == nil {
		return s
	}
	s.Leading, s.Epoch, s.LeaseAge = true, m.term.Epoch(), m.term.LeaseAge()
	for i := range m.hosts {
		if h := &m.hosts[i]; h.Name != m.cfg.Name && h.Seen < pgdb.LostTime {
			s.Standbys++
		}
	}
	return s
}
