package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// failOver makes the follower the database of all hosts, after the one before has crashed.
func (c *trio) failOver(to *postgres.Server) {
	c.t.Helper()
	c.server.Crash(c.t)
	to.Promote(c.t)
	c.server = to
	for _, h := range c.hosts {
		h.proxy.Redirect(to.Address())
	}
}

// The database crashes under load, and one that replicates it takes its place. Commits wait for it, so nothing that was
// acknowledged is lost.
func TestClusterOnPromotedFollower(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	want := c.undisturbed()
	follower := c.server.Follower(t)
	c.server.Synchronous(t)
	ctx, cancel := context.WithTimeout(t.Context(), roundTime)
	defer cancel()
	l := c.begin(ctx, 0)
	l.await(c, 100)
	l.mark()
	// Its own setting would have it wait for a follower that it doesn't have.
	follower.Exec(t, "ALTER SYSTEM RESET synchronous_standby_names")
	c.failOver(follower)
	l.await(c, 100)
	l.end()
	t.Logf("%v without an acknowledgement", l.gap())
	for _, h := range c.hosts {
		h.process.awaitReady(h.site)
	}
	l.check(want, false)
	c.check(0, &fault{name: "follower promoted"}, -1, 0)
	c.stop()
}

// The hosts know both servers, and find out by themselves which of them takes writes: after the first one has crashed, and
// after it has fallen silent.
func TestClusterOnSeveralServers(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(c *trio){
		"crash": func(c *trio) { c.server.Crash(c.t) },
		"silence": func(c *trio) {
			for _, h := range c.hosts {
				h.proxy.Stall(postgres.ToServer)
				h.proxy.Stall(postgres.ToClient)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := postgres.Start(t, "fsync=on", "full_page_writes=on")
			follower := server.Follower(t)
			server.Synchronous(t)
			c := newTrioOn(t, server, func(h *member) string {
				return urlOf(follower.Port(), h.proxy.Port()) + "&target_session_attrs=read-write"
			})
			want := c.undisturbed()
			ctx, cancel := context.WithTimeout(t.Context(), roundTime)
			defer cancel()
			l := c.begin(ctx, 0)
			l.await(c, 100)
			l.mark()
			fail(c)
			follower.Exec(t, "ALTER SYSTEM RESET synchronous_standby_names")
			follower.Promote(t)
			c.server = follower
			l.await(c, 100)
			l.end()
			t.Logf("%v without an acknowledgement", l.gap())
			for _, h := range c.hosts {
				h.process.awaitReady(h.site)
			}
			l.check(want, false)
			c.check(0, &fault{name: "another server"}, -1, 0)
			c.stop()
		})
	}
}

// The hosts reach the database through a pooler, and the leader is killed.
func TestClusterThroughPooler(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t, "fsync=on", "full_page_writes=on")
	port := server.Pooler(t, "session", "default_pool_size = 60")
	c := newTrioOn(t, server, func(h *member) string {
		h.proxy.Redirect(fmt.Sprint("127.0.0.1:", port))
		return urlOf(h.proxy.Port())
	})
	want := c.undisturbed()
	f := &fault{name: "leader killed behind a pooler", moves: true, most: mostExpired, do: (*round).killLeader}
	gap := c.round(0, f, rand.New(rand.NewPCG(0, 0)), want) //nolint:gosec // to be repeated
	t.Logf("%v without an acknowledgement", gap)
	c.stop()
}

// Without synchronous replication the follower may lack commits that were acknowledged. The hosts notice that, say so,
// and go on with what there is.
func TestClusterOnFollowerThatLacksCommits(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	follower := c.server.Follower(t)
	ctx, cancel := context.WithTimeout(t.Context(), roundTime)
	defer cancel()
	submit := func(prefix string) {
		for i := range 20 {
			id := fmt.Sprint(prefix, i)
			if _, err := c.hosts[i%3].api.SubmitWait(ctx, jobhost.Spec{ID: id, Worker: "echo", Payload: []byte(id)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	submit("kept-")
	until(ctx, c, "the follower", func() bool {
		rows := follower.Query(t, "SELECT count(*) FROM jobhost.job WHERE id='kept-19'")
		return rows[0][0] == "1"
	})
	follower.Unfollow(t)
	submit("lost-")
	leader, _ := c.leader()
	c.failOver(follower)
	until(ctx, c, "a job on the follower", func() bool {
		_, err := c.hosts[0].api.SubmitWait(ctx, jobhost.Spec{ID: "after", Worker: "echo"})
		return err == nil
	})
	leader.process.awaitLog("the database has lost acknowledged commits")
	for _, h := range c.hosts {
		h.process.awaitReady(h.site)
		if job, err := h.api.Wait(ctx, "kept-0"); err != nil || job.State != jobhost.Succeeded {
			t.Errorf("%s: %+v, %v", h.name, job, err)
		}
		if _, err := h.api.Job(ctx, "lost-0"); jobhost.CodeOf(err) != jobhost.CodeNotFound {
			t.Errorf("%s: %v", h.name, err)
		}
	}
	c.stop()
}
