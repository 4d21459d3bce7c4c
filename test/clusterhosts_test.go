package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost/client"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// trio is three hosts that share a database.
type trio struct {
	t      *testing.T
	server *postgres.Server
	hosts  [3]*member
	door   *door
	// settled counts by job and task how often any of the hosts has logged a success.
	settled map[string]int
}

// member is one of the hosts. It reaches the database by a way of its own.
type member struct {
	*site
	name    string
	proxy   *postgres.Proxy // to the database
	peers   *postgres.Proxy // by which other hosts reach it
	api     *client.Client  // for all its processes
	process *process        // the current one
}

const clusterManifest = `
[host]
listen = %q
shutdown_timeout = "5s"
cancel_grace = "500ms"
log_level = "debug"
store = %q

[cluster]
name = %q
listen = %q
advertise = %q

[worker.echo]
plugin = "outcomes.wasm"
entry = "echo"
[worker.echo.retry]
max_attempts = 20
initial = "20ms"

[worker.parent]
plugin = "effects.wasm"
entry = "submit"
submit = ["count"]
[worker.parent.retry]
max_attempts = 20
initial = "20ms"

[worker.door]
plugin = "ops.wasm"
entry = "fetch"
pool_size = 4
concurrency_per_key = 1
timeout = "10m"
[worker.door.retry]
max_attempts = 20
initial = "20ms"
[worker.door.http]
allow = [%q]
allow_private = ["127.0.0.1"]
timeout = "10m"
`

// newTrio starts a database that survives a loss of power, and the hosts.
func newTrio(t *testing.T) *trio {
	t.Helper()
	return newTrioOn(t, postgres.Start(t, "fsync=on", "full_page_writes=on"), func(h *member) string { return urlOf(h.proxy.Port()) })
}

// urlOf is the URL of the database behind ports, those of several servers.
func urlOf(ports ...int) string {
	list := make([]string, len(ports))
	for i, port := range ports {
		list[i] = fmt.Sprint("127.0.0.1:", port)
	}
	return "postgres://postgres@" + strings.Join(list, ",") + "/postgres?sslmode=disable"
}

// newTrioOn starts hosts on a server that they reach by their URLs.
func newTrioOn(t *testing.T, server *postgres.Server, url func(*member) string) *trio {
	t.Helper()
	c := &trio{t: t, server: server, door: newDoor(t), settled: map[string]int{}}
	for i := range c.hosts {
		listen := freeAddr(t)
		h := &member{site: newSite(t), name: fmt.Sprint("host-", i+1), proxy: postgres.NewProxy(t, server.Address()), peers: postgres.NewProxy(t, listen)}
		h.write("effects.wasm", guests.Effects)
		h.write("ops.wasm", guests.Ops)
		h.write("manifest.toml", fmt.Appendf(nil, clusterManifest+belowManifest, h.addr, url(h), h.name, listen, h.peers.Address(), c.door.URL))
		h.process = h.start()
		token, err := os.ReadFile(filepath.Join(h.dir, "data", "token"))
		if err != nil {
			t.Fatal(err)
		}
		h.api = client.New("http://"+h.addr, strings.TrimSpace(string(token)))
		c.hosts[i] = h
	}
	return c
}

// leader returns which host has the term, and its epoch; nil = none has.
func (c *trio) leader() (*member, int) {
	c.t.Helper()
	for _, row := range c.server.Query(c.t, "SELECT host, epoch FROM jobhost.lease WHERE NOT released") {
		for _, h := range c.hosts {
			if h.name == row[0] {
				epoch, _ := strconv.Atoi(row[1])
				return h, epoch
			}
		}
	}
	return nil, 0
}

// awaitLeader waits until a host other than old leads.
func (c *trio) awaitLeader(old *member) (*member, int) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); <-tick.C {
		if h, epoch := c.leader(); h != nil && h != old {
			return h, epoch
		}
	}
	c.t.Fatalf("no other host leads after a minute\n%s", c.logs())
	return nil, 0
}

// standby returns one of the hosts that don't lead.
func (c *trio) standby(leader *member, n int) *member {
	for i := range c.hosts {
		if h := c.hosts[(n+i)%len(c.hosts)]; h != leader {
			return h
		}
	}
	return nil
}

// logs returns the ends of what the hosts have logged, without their attempts.
func (c *trio) logs() string {
	var b strings.Builder
	for _, h := range c.hosts {
		fmt.Fprintf(&b, "%s:\n", h.name)
		lines := h.process.without("level=DEBUG")
		for _, line := range lines[max(0, len(lines)-25):] {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// without returns the lines of the log that don't contain a text.
func (p *process) without(text string) (lines []string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, line := range p.log {
		if !strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// noteSuccesses counts the successes that a process has logged, and forgets its lines about attempts: there are many.
func (c *trio) noteSuccesses(p *process) {
	p.lock.Lock()
	defer p.lock.Unlock()
	kept := p.log[:0]
	for _, line := range p.log {
		if strings.Contains(line, `msg="attempt settled"`) && value(line, "outcome") == "succeeded" {
			c.settled[value(line, "job")+"/"+value(line, "task")]++
		}
		if !strings.Contains(line, "level=DEBUG") {
			kept = append(kept, line)
		}
	}
	p.log = kept
}

// written returns the number of the last batch that a host of an epoch has written.
func (c *trio) written(epoch int) int {
	c.t.Helper()
	rows := c.server.Query(c.t, fmt.Sprintf("SELECT coalesce(max(n), 0) FROM jobhost.batch WHERE epoch<=%d", epoch))
	n, err := strconv.Atoi(rows[0][0])
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}
