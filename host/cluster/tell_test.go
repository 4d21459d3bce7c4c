package cluster_test

import "testing"

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
