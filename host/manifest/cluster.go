package manifest

import (
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost/internal/text"
)

// Postgres is the driver of stores that several hosts share.
const Postgres = "postgres"

// Cluster is the section [cluster]: this host among those that share a PostgreSQL.
type Cluster struct {
	// Name is this host's; no other one of the cluster has it.
	Name string
	// Listen is where other hosts reach this one, "host:port"; empty = at this end of the connections to the database.
	Listen string
	// Advertise is where they find it, if that is elsewhere.
	Advertise string
	// Lease is how long a host leads that can't renew that.
	Lease time.Duration
	// Lead lets this host lead.
	Lead bool
	// Password is that of the user of the database; without one it is what PGPASSWORD says, else PGPASSFILE or ~/.pgpass.
	Password Secret
}

func defaultCluster() Cluster {
	name, _ := os.Hostname()
	return Cluster{Name: name, Lease: 5 * time.Second, Lead: true}
}

// cluster reads the section [cluster], which only hosts have that share a store.
func (r *reader) cluster(doc map[string]any, m *Manifest) {
	m.Cluster = defaultCluster()
	path := []string{"cluster"}
	table, given := r.table(doc, nil, "cluster")
	if !given {
		return
	}
	unknown := slices.ContainsFunc(r.faults, func(f *Fault) bool { return f.Key == "host.store" }) // it may be meant to be one
	if m.Host.Store.Driver != Postgres && !unknown {
		r.faultKey(path, path, "only hosts that share a PostgreSQL are a cluster", `set store = "postgres://USER@HOST/DATABASE" in [host], or leave the section out`)
		return
	}
	fill(r, path, table, clusterFields(), &m.Cluster)
	if !r.beside {
		r.payloadSecret(at(path, "password"), table["password"], &m.Cluster.Password)
	}
}

func clusterFields() []field[Cluster] {
	type f = field[Cluster]
	return []f{
		{
			name: "name", kind: kindText, auto: "the name of the machine", meaning: "Name of this host, which no other host of the cluster has: 1 to 63 of `a-z A-Z 0-9 . _ -`, beginning with a letter or digit.",
			bind: func(_ string, c *Cluster) setting { return textual(&c.Name, "host-1", clusterName) },
		},
		{
			name: "listen", kind: "host:port", auto: "this end of the connections to the database, any free port", meaning: "Address that other hosts reach this one by, over mutual TLS. It is not the one of the API.",
			bind: func(_ string, c *Cluster) setting { return textual(&c.Listen, "10.0.0.1:7071", hostPort) },
		},
		{
			name: "advertise", kind: "host:port", auto: "where it listens", meaning: "Address that other hosts find this one at, if that is another, as behind NAT.",
			bind: func(_ string, c *Cluster) setting { return textual(&c.Advertise, "10.0.0.1:7071", hostPort) },
		},
		{
			name: "lease", kind: kindDuration, meaning: "How long a host leads that can't reach the database, and so how long it takes until another one replaces it; one that was stopped or killed is replaced sooner. All hosts must have the same. 2s to 1m.",
			bind: func(_ string, c *Cluster) setting { return duration(&c.Lease, 2*time.Second, time.Minute) },
		},
		{
			name: "lead", kind: kindFlag, meaning: "This host may lead. One that may not always stands by.",
			bind: func(_ string, c *Cluster) setting { return boolean(&c.Lead) },
		},
		{
			name: "password", kind: kindSecret, auto: "what `PGPASSWORD` says, else `PGPASSFILE` or `~/.pgpass`", meaning: "Password of the user of the database.",
			bind: func(dir string, c *Cluster) setting { return secretOf(dir, &c.Password) },
		},
	}
}

var clusterNames = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$`)

func clusterName(s string) error {
	if !clusterNames.MatchString(s) {
		return wrong("use 1 to 63 of a-z A-Z 0-9 . _ -, beginning with a letter or digit", "%s is no name of a host", text.Quote(s, text.Short))
	}
	return nil
}

func hostPort(s string) error {
	if host, port, err := net.SplitHostPort(s); err != nil || host == "" || port == "" {
		return wrong("write it as HOST:PORT, such as 10.0.0.1:7071", "%s is no address", text.Quote(s, text.Short))
	}
	return nil
}

// postgresStore reads the URL of a database, in which no secret may stand. It may name several servers.
func postgresStore(s string) (Store, error) {
	const hint = `use "postgres://USER@HOST/DATABASE"`
	_, rest, _ := strings.Cut(s, "://")
	where, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return Store{}, wrong(hint, "what follows the question mark in the URL of the database can't be read")
	}
	authority, _, _ := strings.Cut(where, "/")
	user := ""
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		user, authority = authority[:i], authority[i+1:]
	}
	secret := strings.Contains(user, ":") || slices.ContainsFunc([]string{"password", "sslpassword"}, values.Has)
	switch {
	case secret:
		return Store{}, wrong("leave it out, and set PGPASSFILE or password in [cluster]", "the password itself must not stand in the manifest")
	case authority == "" && !values.Has("host"):
		return Store{}, wrong(hint, "the URL of the database names no server")
	}
	return Store{Driver: Postgres, URL: s}, nil
}

// showCluster shows what stands in the manifest of a host that shares its store.
func (m *Manifest) showCluster(b *strings.Builder) {
	if m.Host.Store.Driver != Postgres {
		return
	}
	b.WriteString("\n[cluster]\n")
	showFields(b, m.Dir, clusterFields(), &m.Cluster)
}
