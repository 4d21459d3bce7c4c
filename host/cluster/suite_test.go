package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
	engine "github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/cluster"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
	"github.com/jobhost/jobhost/state/pgstate"
)

// TestSuiteThroughStandby: a standby answers clients exactly as the leader does.
func TestSuiteThroughStandby(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, throughStandby)
}

func TestWorkflowsThroughStandby(t *testing.T) {
	t.Parallel()
	hosttest.RunWorkflows(t, throughStandby)
}

// throughStandby returns a client of a standby.
func throughStandby(t testing.TB) jobhost.Server {
	t.Helper()
	w := newEngines(t)
	w.join(t, "a")
	return serve(t, w.join(t, "b", neverLeads))
}

// TestSuiteWhileLeadersChange: a client of a standby is answered all the same while two other hosts take the lead from
// each other over and over.
func TestSuiteWhileLeadersChange(t *testing.T) {
	t.Parallel()
	const (
		fibers = "fibers live in the memory of the leader, and end with its term"
		events = "events are those of one leader: the client learns that they are lost, and begins anew"
		watch  = "a watch ends with the term, and its client is notified that the host stops"
	)
	without := hosttest.Without{"scale": "the number of slots is as in the manifest for each leader"}
	for _, name := range []string{
		"fibers", "fiber ends", "fiber errors", "fiber full", "fiber interrupt", "fiber restarts", "fibers max", "list fibers", "watch fiber",
	} {
		without[name] = fibers
	}
	for _, name := range []string{"events", "events again", "events of a job"} {
		without[name] = events
	}
	for _, name := range []string{"watch states", "watch states on", "watch a job", "states of a gone"} {
		without[name] = watch
	}
	hosttest.Run(t, whileLeadersChange, without)
}

func TestWorkflowsWhileLeadersChange(t *testing.T) {
	t.Parallel()
	hosttest.RunWorkflows(t, whileLeadersChange, hosttest.Without{"events": "they are those of one leader"})
}

// leadTime is how long a host leads before the other one is asked to.
const leadTime = 100 * time.Millisecond

func whileLeadersChange(t testing.TB) jobhost.Server {
	t.Helper()
	w := newEngines(t)
	a, b := w.join(t, "a"), w.join(t, "b")
	standby := w.join(t, "c", neverLeads)
	ctx, stop := context.WithCancel(context.Background())
	changes := 0
	var changing sync.WaitGroup
	changing.Go(func() { changes = takeTurns(ctx, t, a, b) })
	c := serve(t, standby)
	t.Cleanup(func() {
		stop()
		changing.Wait()
		t.Logf("another host took the lead %d times", changes)
	})
	return c
}

// takeTurns lets two hosts lead by turns, and returns how often they did.
func takeTurns(ctx context.Context, t testing.TB, a, b *host) (changes int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		leader, next := a, b
		select {
		case <-a.took:
		case <-b.took:
			leader, next = b, a
		case <-ctx.Done():
			return changes
		}
		changes++
		timer.Reset(leadTime)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return changes
		}
		if err := next.AskToLead(ctx, next.name); err != nil && ctx.Err() == nil {
			t.Errorf("ask %s to lead: %v", next.name, err)
		}
		leader.Beat(ctx)
	}
}

func neverLeads(cfg *cluster.Config) { cfg.StandBy = true }

// newEngines returns a world whose leaders run jobs.
func newEngines(t testing.TB) *world {
	t.Helper()
	return newEnginesOn(t, postgres.Shared(t), "")
}

func newEnginesOn(t testing.TB, server *postgres.Server, user string) *world {
	t.Helper()
	w := &world{server: server, schema: server.Schema(t), user: user, schemas: append(pgqueue.Schemas(), pgstate.Schemas()...)}
	cfg := hosttest.Storeless(t)
	cfg.Reread = hosttest.Reread(&cfg)
	w.life = func(h *host) func(context.Context, *pgdb.Term) error {
		return func(ctx context.Context, term *pgdb.Term) error { return h.run(ctx, term, cfg) }
	}
	return w
}

const token = "0123456789abcdefghijklmnopqrstuv"

// run is a life of a host in which it runs jobs: what cmd/jobhost makes of it.
func (h *host) run(ctx context.Context, term *pgdb.Term, cfg engine.Config) error {
	w, err := term.NewWriter(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	states, err := pgstate.New(ctx, h.db, term, w)
	if err != nil {
		return err
	}
	defer func() { _ = states.Close() }()
	store, err := pgqueue.New(ctx, h.db, term, w, states)
	if err != nil {
		return err
	}
	cfg.Store, cfg.States, cfg.Workers = store, states, slices.Clone(cfg.Workers)
	cfg.HandOver = func() bool { return term.Err() != nil || h.HasSuccessor() }
	server, err := engine.New(cfg)
	if err != nil {
		return err
	}
	face, err := api.New(api.Config{Server: server.Server, Token: token, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer face.Stop()
	defer context.AfterFunc(ctx, face.Stop)()
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	if _, err := server.AwaitReady(ctx); err == nil {
		_ = h.Serve(term, face, face.Stop) // unless the term has ended
	}
	return <-ended
}

// serve serves the API of a host as cmd/jobhost does, and returns a client of it.
func serve(t testing.TB, h *host) *client.Client {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := api.Serve(ctx, h.Handler(), func() {}, listener, api.ServeConfig{ShutdownTimeout: 5 * time.Second}); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("serve: %v", err)
		}
	})
	c := client.New(listener.Addr().String(), token)
	t.Cleanup(func() {
		c.Close()
		stop()
		serving.Wait()
	})
	return c
}
