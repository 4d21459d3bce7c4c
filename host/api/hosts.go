package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/jobhost/jobhost"
)

// hostsPath is where each host answers by itself about the hosts of its cluster, also while none leads.
const hostsPath = "/v1/hosts"

func ofHosts(path string) bool { return path == hostsPath || strings.HasPrefix(path, hostsPath+"/") }

func (a *API) hostRoutes() []route {
	host := answers[jobhost.HostStatus](200, "The host.")
	return []route{
		{"GET", hostsPath, "listHosts", "List the hosts that share the store", reads, "", nil, []answer{
			answers[[]jobhost.HostStatus](200, "All hosts that were heard of within a day, by name."),
		}, a.listHosts},
		{"GET", hostsPath + "/{name}", "getHost", "Show a host", reads, "", nil, []answer{host}, a.getHost},
		{"POST", hostsPath + "/{name}/drain", "drainHost", "Ask a host not to lead", writes, "", nil, []answer{host}, a.drainHost},
		{"POST", hostsPath + "/{name}/lead", "leadHost", "Ask a host to lead", writes, "", nil, []answer{host}, a.leadHost},
	}
}

var errAlone = &jobhost.Error{
	Code: jobhost.CodeNotFound, Message: "this host shares its store with no other",
	Hint: `hosts with store = "postgres://…" are a cluster`,
}

func (a *API) cluster() (jobhost.Cluster, error) {
	if a.cfg.Cluster == nil {
		return nil, errAlone
	}
	return a.cfg.Cluster, nil
}

func (a *API) listHosts(w http.ResponseWriter, r *http.Request) error {
	cluster, err := a.cluster()
	if err != nil {
		return err
	}
	hosts, err := cluster.Hosts(r.Context())
	if err != nil {
		return err
	}
	if hosts == nil {
		hosts = []jobhost.HostStatus{} // a list, not null
	}
	return answerJSON(w, http.StatusOK, hosts)
}

func (a *API) getHost(w http.ResponseWriter, r *http.Request) error {
	return a.answerHost(w, r, func(c jobhost.Cluster, ctx context.Context, name string) (jobhost.HostStatus, error) {
		hosts, err := c.Hosts(ctx)
		if err != nil {
			return jobhost.HostStatus{}, err
		}
		for i := range hosts {
			if hosts[i].Name == name {
				return hosts[i], nil
			}
		}
		return jobhost.HostStatus{}, &jobhost.Error{Code: jobhost.CodeNotFound, Field: "name", Message: "there is no host of this name", Hint: "see " + hostsPath}
	})
}

func (a *API) drainHost(w http.ResponseWriter, r *http.Request) error {
	return a.answerHost(w, r, jobhost.Cluster.DrainHost)
}

func (a *API) leadHost(w http.ResponseWriter, r *http.Request) error {
	return a.answerHost(w, r, jobhost.Cluster.LeadHost)
}

func (a *API) answerHost(w http.ResponseWriter, r *http.Request, ask func(jobhost.Cluster, context.Context, string) (jobhost.HostStatus, error)) error {
	name := r.PathValue("name")
	if err := jobhost.CheckHost(name); err != nil {
		return err
	}
	cluster, err := a.cluster()
	if err != nil {
		return err
	}
	host, err := ask(cluster, r.Context(), name)
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, host)
}
