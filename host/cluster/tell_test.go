package cluster_test

import (
	"testing"
	"time"
)

// TestLeaderLooksAtWishes: when a standby answers a request to drain a host or let it lead, the leader knows of it.
func TestLeaderLooksAtWishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.join(t, "a")
	first := a.leads(t)
	b := w.join(t, "b")
	b.standsBy(t, "a")
	if !awaitSuccessor(a) {
		t.Fatal("a doesn't know of b")
	}
	if err := b.Drain(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if !a.KnowsDrained("a") {
		t.Error("the leader has not looked")
	}
	first.ends(t)
	b.leads(t)
}

// TestLeadOfADrainedHost: a drained host that is asked to lead goes on leading, although it last heard that it was drained.
func TestLeadOfADrainedHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.join(t, "a")
	first := a.leads(t)
	b := w.join(t, "b")
	b.standsBy(t, "a")
	if err := a.Drain(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	awaitDrained(t, b, true)
	if err := a.AskToLead(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	first.ends(t)
	second := b.leads(t)
	awaitDrained(t, b, false)
	select {
	case <-second.over:
		t.Errorf("b is to lead no more: %v", second.cause)
	case <-a.lives:
		t.Error("a leads again")
	default:
	}
}

// awaitDrained waits until a host knows whether it is drained.
func awaitDrained(t *testing.T, h *host, drained bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(soon); h.KnowsDrained(h.name) != drained; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s doesn't know whether it is drained", h.name)
		}
	}
}
