package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// hostEnv is env for the commands about the hosts of a cluster.
type hostEnv struct{ *env }

func newHostCommand(e hostEnv) *cobra.Command {
	return newGroup("host", "Show the hosts that share a store, and say which one leads",
		newHostListCommand(e),
		e.one("show", "Show a host in full", "", func(ctx context.Context, cluster jobhost.Cluster, name string) (jobhost.HostStatus, error) {
			hosts, err := cluster.Hosts(ctx)
			if err != nil {
				return jobhost.HostStatus{}, err
			}
			for i := range hosts {
				if hosts[i].Name == name {
					return hosts[i], nil
				}
			}
			return jobhost.HostStatus{}, &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no host of this name", Hint: "jobhost host ls lists them"}
		}),
		e.one("drain", "Let a host stand by",
			`A host that leads gives up its term, and another one leads. What it runs goes back to
the queue without counting as an attempt. It stands by until it is started anew or
asked to lead.`, func(ctx context.Context, cluster jobhost.Cluster, name string) (jobhost.HostStatus, error) {
				return cluster.DrainHost(ctx, name)
			}),
		e.one("lead", "Let a host lead",
			`The host that leads gives up its term, as with jobhost host drain, and this one takes
its place.`, func(ctx context.Context, cluster jobhost.Cluster, name string) (jobhost.HostStatus, error) {
				return cluster.LeadHost(ctx, name)
			}))
}

func newHostListCommand(e hostEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the hosts that share a store",
		Long: `List the hosts that share a store: those that were heard of within a day.

The leader runs all jobs. A standby would take its place; one that is drained would
only if no other is left. A lost one was not heard of for three seconds. EPOCH rises
whenever another host leads, BUSY is how many of the slots run a task, and SEEN is
when the host was last heard of.

Every host answers, also while none leads.`,
		Example: `  jobhost host ls
  jobhost host ls -o json`,
		Args:              exactly(),
		RunE:              func(cmd *cobra.Command, _ []string) error { return e.list(cmd.Context()) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// hostSubject are hosts, which commands name.
var hostSubject = subject{
	noun: "host", arg: "NAME", example: "host-1", check: jobhost.CheckHost,
	names: func(ctx context.Context, server jobhost.Server) (names []string) {
		cluster, err := clusterOf(server)
		if err != nil {
			return nil
		}
		hosts, _ := cluster.Hosts(ctx)
		for i := range hosts {
			names = append(names, hosts[i].Name)
		}
		return names
	},
}

func clusterOf(server jobhost.Server) (jobhost.Cluster, error) {
	if cluster, ok := server.(jobhost.Cluster); ok {
		return cluster, nil
	}
	return nil, &jobhost.Error{Code: jobhost.CodeNotFound, Message: "the host shares its store with no other"}
}

// one returns a command about one host.
func (e hostEnv) one(verb, short, long string, ask func(context.Context, jobhost.Cluster, string) (jobhost.HostStatus, error)) *cobra.Command {
	return hostSubject.command(e.env, verb, short, long, func(ctx context.Context, server jobhost.Server, name string) error {
		cluster, err := clusterOf(server)
		if err != nil {
			return err
		}
		h, err := ask(ctx, cluster, name)
		if err != nil {
			return err
		}
		return e.print(&h)
	})
}

func (e hostEnv) list(ctx context.Context) error {
	server, err := e.server()
	if err != nil {
		return err
	}
	cluster, err := clusterOf(server)
	if err != nil {
		return err
	}
	hosts, err := cluster.Hosts(ctx)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return jsonLines(e.env, hosts)
	}
	t := e.newTable("NAME", "ROLE", "EPOCH", "ADDRESS", "BUSY", "VERSION", "SINCE", "SEEN")
	for i := range hosts {
		h := &hosts[i]
		t.row(h.Name, string(h.Role), epoch(h), h.Address, busy(h), h.Version, e.when(h.Since), ago(h))
	}
	t.flush()
	return nil
}

func epoch(h *jobhost.HostStatus) string {
	if h.Epoch == 0 {
		return ""
	}
	return strconv.FormatInt(h.Epoch, 10)
}

func busy(h *jobhost.HostStatus) string { return strconv.Itoa(h.Busy) + "/" + strconv.Itoa(h.Slots) }

func ago(h *jobhost.HostStatus) string {
	return time.Duration(h.Seen).Round(100*time.Millisecond).String() + " ago"
}

func (e hostEnv) print(h *jobhost.HostStatus) error {
	if e.wantsJSON() {
		return e.json(h)
	}
	t := e.newTable()
	t.field("name", h.Name)
	t.field("role", string(h.Role))
	t.field("epoch", epoch(h))
	if h.Wanted && h.Role != jobhost.HostLeads {
		t.field("asked to", "lead")
	}
	if !h.MayLead {
		t.field("may lead", "no, by its manifest")
	}
	t.field("address", h.Address)
	t.field("busy", busy(h)+" slots")
	t.field("version", h.Version)
	t.field("since", e.when(h.Since))
	t.field("seen", ago(h))
	t.flush()
	return nil
}
