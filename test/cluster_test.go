package test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// fault is what happens to a cluster in a round.
type fault struct {
	name string
	// most is how long clients may wait, several times what it takes on a quiet machine.
	most time.Duration
	// overlaps is set if an attempt may begin while that of the old leader goes on: only for a host that can't notice
	// that its lease is over.
	overlaps bool
	// without is set if there is no database for a while, so that guests' calls for keys are refused.
	without bool
	// moves is set if another host is to lead then.
	moves bool
	// do makes it happen. It reports whether clients are to be served although it goes on, and returns what ends it.
	do func(r *round) (served bool, heal func())
}

// round is one of a sequence of faults.
type round struct {
	*trio
	random *rand.Rand
	leader *member // before the fault
}

// The times that each fault may take: see docs/cluster.md.
const (
	mostKilled    = 4 * 3 * time.Second
	mostExpired   = 3 * 8 * time.Second
	mostDrained   = 5 * time.Second
	mostUnreached = 3 * patience
	mostCrashed   = 30 * time.Second
)

// faults are the kinds of faults, each in its variants.
func faults() [][]fault {
	return [][]fault{
		{{name: "leader killed", moves: true, most: mostKilled, do: (*round).killLeader}},
		{{name: "leader stopped", moves: true, most: mostExpired, overlaps: true, do: (*round).stopLeader}},
		{
			{name: "leader can't send to the database", moves: true, most: mostExpired, do: func(r *round) (bool, func()) { return r.cutOff(postgres.ToServer) }},
			{name: "leader doesn't hear the database", moves: true, most: mostExpired, do: func(r *round) (bool, func()) { return r.cutOff(postgres.ToClient) }},
		},
		{{name: "standby killed", most: mostKilled, do: (*round).killStandby}},
		{
			{name: "leader drained", moves: true, most: mostDrained, do: (*round).drain},
			{name: "leader terminated", moves: true, most: mostDrained, do: (*round).terminate},
		},
		{{name: "standbys can't reach the leader", most: mostUnreached, do: (*round).partLeader}},
		{{name: "database crashed", most: mostCrashed, without: true, do: (*round).crashDatabase}},
	}
}

func (r *round) killLeader() (served bool, heal func()) {
	r.leader.process.kill()
	r.leader.peers.Refuse()
	r.door.forget()
	return true, func() { r.again(r.leader) }
}

func (r *round) killStandby() (served bool, heal func()) {
	h := r.standby(r.leader, r.random.IntN(3))
	h.process.kill()
	return true, func() { r.again(h) }
}

// again starts a host whose process has ended.
func (r *round) again(h *member) {
	r.noteSuccesses(h.process)
	h.peers.Listen(r.t)
	h.process = h.start()
}

// stopLeader stops the process for a while, which may be too short for another host to take over.
func (r *round) stopLeader() (served bool, heal func()) {
	most := 8 * time.Second
	if r.random.IntN(often(1<<30, 10)) == 0 {
		most = time.Minute
	}
	stopped := time.Second + time.Duration(r.random.Int64N(int64(most-time.Second)))
	if often(0, 1) == 0 {
		stopped = max(stopped, 6*time.Second) // the one round of this kind
	}
	process := r.leader.process.cmd.Process
	_ = process.Signal(syscall.SIGSTOP)
	<-time.After(stopped)
	now, _ := r.trio.leader()
	r.t.Logf("stopped for %v", stopped.Round(time.Millisecond))
	return now != nil && now != r.leader, func() { _ = process.Signal(syscall.SIGCONT) }
}

// cutOff lets nothing pass any more between the leader and the database in one direction.
func (r *round) cutOff(way postgres.Direction) (served bool, heal func()) {
	r.leader.proxy.Stall(way)
	return true, r.leader.proxy.Flow
}

// mostAnswered is how long a standby may take to say that it can't reach the leader.
const mostAnswered = 2 * 10 * time.Second

// partLeader lets nothing pass any more between the leader and the standbys. All of them reach the database, so nothing
// changes hands; clients of the leader are served, and those of a standby are answered what is wrong.
func (r *round) partLeader() (served bool, heal func()) {
	r.leader.peers.Stall(postgres.ToServer)
	r.leader.peers.Stall(postgres.ToClient)
	begun := time.Now()
	_, err := r.standby(r.leader, r.random.IntN(3)).api.Workers(r.t.Context())
	took := time.Since(begun)
	r.t.Logf("a standby answered after %v: %v", took.Round(time.Millisecond), err)
	if want := r.leader.name + " at " + r.leader.peers.Address(); jobhost.CodeOf(err) != jobhost.CodeUnavailable || !strings.Contains(err.Error(), want) || took > mostAnswered {
		r.t.Errorf("a standby answered %v after %v, want within %v that it can't reach %s", err, took, mostAnswered, want)
	}
	return true, r.leader.peers.Flow
}

func (r *round) drain() (served bool, heal func()) {
	if _, err := r.standby(r.leader, r.random.IntN(3)).api.DrainHost(r.t.Context(), r.leader.name); err != nil {
		r.t.Errorf("drain %s: %v", r.leader.name, err)
	}
	return true, func() { r.terminate(); r.again(r.leader) }
}

func (r *round) terminate() (served bool, heal func()) {
	if code := r.leader.process.stop(); code != 0 {
		r.t.Errorf("%s ended with %d after SIGTERM:\n%s", r.leader.name, code, r.logs())
	}
	return true, func() { r.again(r.leader) }
}

func (r *round) crashDatabase() (served bool, heal func()) {
	r.server.Crash(r.t)
	<-time.After(time.Duration(r.random.Int64N(int64(time.Second))))
	r.server.Restart(r.t)
	return true, func() {}
}

// Three hosts share a database under load while one fault after the other happens to them or to it. Whatever was
// acknowledged, by any of the hosts, has to be there and to end once, with its effects; no attempt begins with a key
// that another one holds; and the time without a leader is bounded. JOBHOST_SEED repeats a sequence.
func TestCluster(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if text := os.Getenv("JOBHOST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("JOBHOST_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // to be repeated
	c := newTrio(t)
	want := c.undisturbed()
	took := map[string][]time.Duration{}
	var order []int
	for n := range often(len(faults()), 200) {
		if len(order) == 0 {
			order = random.Perm(len(faults()))
		}
		kind := faults()[order[0]]
		f := kind[random.IntN(len(kind))]
		order = order[1:]
		gap := c.round(n, &f, random, want)
		t.Logf("round %d: %s: %v without an acknowledgement", n, f.name, gap.Round(time.Millisecond))
		took[f.name] = append(took[f.name], gap)
		if t.Failed() {
			t.Fatalf("the round has failed\n%s", c.logs())
		}
	}
	for name, all := range took {
		slices.Sort(all)
		t.Logf("%s, %d times: median %v, longest %v", name, len(all), all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond))
	}
	c.stop()
}

// undisturbed returns what the workflow comes to.
func (c *trio) undisturbed() string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	api := c.hosts[0].api
	_, err := api.StartWorkflow(ctx, jobhost.WorkflowStart{ID: "wf-undisturbed", Definition: counted()})
	if err == nil {
		err = api.SignalWorkflow(ctx, "wf-undisturbed", jobhost.WorkflowSignal{Name: "go", ID: "once", Payload: []byte("1")})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	run, err := api.WaitWorkflow(ctx, "wf-undisturbed")
	if err != nil || run.Status != jobhost.WorkflowCompleted || !strings.Contains(outcomeOf(&run), "fan completed [1,1,1]") {
		c.t.Fatalf("%s, %v", outcomeOf(&run), err)
	}
	return outcomeOf(&run)
}

// roundTime bounds a round with all that is checked after it.
const roundTime = 4 * time.Minute

// round lets one fault happen, and returns for how long nothing was acknowledged.
func (c *trio) round(n int, f *fault, random *rand.Rand, want string) time.Duration {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), roundTime)
	defer cancel()
	leader, epoch := c.awaitLeader(nil)
	l := c.begin(ctx, n)
	l.await(c, 60)
	c.door.hold()
	until(ctx, c, "a job at the door", func() bool { return c.door.callers() > 0 })
	l.mark()
	served, heal := f.do(&round{c, random, leader})
	written := -1
	if served && f.moves {
		c.awaitLeader(leader)
	}
	if served {
		l.await(c, 30)
		if now, _ := c.leader(); now != leader {
			written = c.written(epoch)
		}
	}
	gap := l.gap()
	heal()
	l.await(c, 30)
	if !served {
		gap = l.gap()
	}
	c.door.release()
	l.await(c, 30)
	l.end()
	for _, h := range c.hosts {
		h.process.awaitReady(h.site)
	}
	l.check(want, !f.without)
	if gap > f.most {
		c.t.Errorf("round %d: nothing was acknowledged for %v, want at most %v", n, gap, f.most)
	}
	c.check(n, f, written, epoch)
	return gap
}

// check checks what is to hold for all rounds.
func (c *trio) check(n int, f *fault, written, epoch int) {
	c.t.Helper()
	if overlaps := c.door.overlaps(); overlaps > 0 {
		c.t.Logf("round %d: %s: %d attempts began while another with their key went on", n, f.name, overlaps)
		if !f.overlaps {
			c.t.Error("that must not be")
		}
	}
	if now := c.written(epoch); written >= 0 && now > written {
		c.t.Errorf("round %d: batch %d is of the old leader; another host led when %d was its last one", n, now, written)
	}
	// Batches are numbered, and each names the epoch of its leader.
	rows := c.server.Query(c.t, `SELECT n, epoch, before FROM (SELECT n, epoch, max(epoch) OVER (ORDER BY n) AS before FROM jobhost.batch) AS b WHERE epoch<before`)
	if len(rows) > 0 {
		c.t.Errorf("round %d: batches of leaders that were none any more, with their epochs and those before: %v", n, rows)
	}
	for _, h := range c.hosts {
		c.noteSuccesses(h.process)
	}
	for task, times := range c.settled {
		if times > 1 {
			c.t.Errorf("round %d: task %s has succeeded %d times", n, task, times)
		}
	}
}

// stop ends all hosts in an orderly way.
func (c *trio) stop() {
	for _, h := range c.hosts {
		if code := h.process.stop(); code != 0 {
			c.t.Errorf("%s ended with %d after SIGTERM:\n%s", h.name, code, c.logs())
		}
	}
}
