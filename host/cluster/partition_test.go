package cluster_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost/host/cluster"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// joinBehind starts a host that others reach through a proxy.
func (w *world) joinBehind(t *testing.T, name string) (*host, *postgres.Proxy) {
	t.Helper()
	way := postgres.NewProxy(t, "127.0.0.1:0")
	h := w.join(t, name, func(cfg *cluster.Config) { cfg.Listen, cfg.Advertise = "127.0.0.1:0", way.Address() })
	way.Redirect(h.Listens().String())
	return h, way
}

// TestPartition: a standby that can't reach the leader, while both reach the database, says so within a bounded time, and
// where the leader is to be found. It answers again when the partition ends, and nothing has changed hands.
func TestPartition(t *testing.T) {
	t.Parallel()
	const most = 15 * time.Second // a request waits for 10 s
	w := newWorld(t)
	a, way := w.joinBehind(t, "a")
	first := a.leads(t)
	b := w.join(t, "b")
	b.standsBy(t, "a")

	way.Stall(postgres.ToServer)
	way.Stall(postgres.ToClient)
	begun := time.Now()
	changed := make(chan string, 1)
	go func() { changed <- do(t, request(t, http.MethodPost, b.url+"/", strings.NewReader("x"))) }()
	if got := b.get(t, "/"); !unreached(got, "a", way.Address()) {
		t.Errorf("a read: %s", got)
	}
	took := time.Since(begun)
	t.Logf("a read was answered after %v", took)
	if took > most {
		t.Errorf("a read was answered after %v", took)
	}
	// It was sent when the connection seemed to be good.
	if got := <-changed; !strings.HasPrefix(got, "502 ") || !strings.Contains(got, "may have been carried out") {
		t.Errorf("a change: %s", got)
	}
	if err := b.Ready(); err == nil || strings.Contains(err.Error(), way.Address()) {
		t.Errorf("it is ready, or tells everyone where hosts are: %v", err)
	}

	// What comes now was surely not carried out.
	begun = time.Now()
	go func() { changed <- do(t, request(t, http.MethodPost, b.url+"/", strings.NewReader("x"))) }()
	if got := <-changed; !unreached(got, "a", way.Address()) {
		t.Errorf("a change: %s", got)
	}
	if took := time.Since(begun); took > most {
		t.Errorf("a change was answered after %v", took)
	}
	// And what waits when the partition ends is carried out.
	go func() { changed <- do(t, request(t, http.MethodPost, b.url+"/", strings.NewReader("x"))) }()
	way.Flow()
	if got := <-changed; got != "a" {
		t.Errorf("after the partition: %s", got)
	}
	for deadline := time.Now().Add(soon); b.Ready() != nil; <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(b.Ready())
		}
	}
	if err := first.term.Err(); err != nil {
		t.Errorf("the leader was replaced: %v", err)
	}
}

// unreached reports whether an answer says that a leader can't be reached, and where that is.
func unreached(answer, leader, address string) bool {
	return strings.HasPrefix(answer, "503 ") && strings.Contains(answer, "the host that leads, "+leader+" at "+address+", can't be reached")
}
