package pgdb_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestCut cuts the connections after each number of bytes that a commit sends or gets: each is acknowledged, and
// counts once.
func TestCut(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	h := lead(t, open(t, server.URLAt(proxy.Port()), server.Schema(t), "a"))
	want := int64(0)
	step := int64(23)
	if os.Getenv("JOBHOST_CHAOS") != "" {
		step = 1
	}
	for _, way := range []postgres.Direction{postgres.ToServer, postgres.ToClient} {
		for k := rand.Int64N(step); k < 600; k += step {
			proxy.CutAfter(way, k)
			change := func() (int64, error) { return h.add("x", 1) }
			if want++; k/step%3 == 0 && want < 1<<40 {
				want = 2 * (want - 1)
				change = func() (int64, error) { return h.double("x") }
			}
			sum, err := change()
			if err != nil || sum != want {
				t.Fatalf("cut after %d bytes in direction %d: %d, %v; want %d", k, way, sum, err, want)
			}
		}
	}
	proxy.CutAfter(postgres.ToServer, -1)
	proxy.CutAfter(postgres.ToClient, -1)
	if got := stored(t, h.db)["x"]; got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	if h.term.Epoch() < 10 {
		t.Errorf("epoch %d: no outcome was looked up", h.term.Epoch())
	}
}

// TestStalled: a host that can't reach the database ends its term before another one begins one.
func TestStalled(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	for _, way := range []postgres.Direction{postgres.ToServer, postgres.ToClient} {
		t.Run(fmt.Sprint(way), func(t *testing.T) {
			t.Parallel()
			proxy := postgres.NewProxy(t, server.Address())
			schema := server.Schema(t)
			first := lead(t, open(t, server.URLAt(proxy.Port()), schema, "a"))
			if _, err := first.add("x", 1); err != nil {
				t.Fatal(err)
			}
			proxy.Stall(way)
			stalled := time.Now()
			type ending struct {
				err error
				at  time.Time
			}
			ended := make(chan ending, 1)
			go func() {
				_, err := first.add("x", 1) // its outcome is unknown
				<-first.term.Done()
				ended <- ending{err, time.Now()}
			}()
			second := lead(t, open(t, server.URL(), schema, "b"))
			began := time.Now()
			end := <-ended
			if !errors.Is(end.err, pgdb.ErrTermOver) {
				t.Errorf("the stalled host was told %v", end.err)
			}
			if !end.at.Before(began) {
				t.Errorf("the second term began %v before the first had ended", end.at.Sub(began))
			}
			if took := began.Sub(stalled); took > 8*time.Second {
				t.Errorf("it took %v", took)
			}
			sum, err := second.add("x", 1)
			if err != nil || sum < 2 || sum > 3 {
				t.Errorf("%d, %v", sum, err)
			}
			proxy.Flow()
			if got := stored(t, second.db)["x"]; got != sum {
				t.Errorf("got %d, want %d: the first host has written", got, sum)
			}
		})
	}
}

// TestServerRestarts: commits go on after the server has crashed and recovered, if that is within the lease.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t, "fsync=on", "full_page_writes=on")
	cfg := config(server.URL(), server.Schema(t), "a")
	cfg.Lease = time.Minute
	h := lead(t, openWith(t, cfg))
	for want := int64(1); want <= 6; want++ {
		if want%2 == 0 {
			server.Crash(t)
			go server.Restart(t)
		}
		sum, err := h.add("x", 1)
		if err != nil || sum != want {
			t.Fatalf("%d, %v; want %d", sum, err, want)
		}
	}
}
