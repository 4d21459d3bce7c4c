package cluster_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/cluster"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestHandOver: when a host is stopped in good order, another one leads at once.
func TestHandOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.join(t, "a")
	first := a.leads(t)
	if why := a.reason(t); why != cluster.First {
		t.Errorf("a leads: %s", why)
	}
	b := w.join(t, "b")
	b.standsBy(t, "a")
	if !awaitSuccessor(a) {
		t.Error("a doesn't know of b")
	}
	begun := time.Now()
	a.stop()
	second := b.leads(t)
	took := second.begun.Sub(begun)
	t.Logf("b leads %v after a was stopped", took)
	if took > 5*time.Second {
		t.Errorf("b leads after %v", took)
	}
	first.ends(t)
	if errors.Is(first.cause, pgdb.ErrTermOver) || second.begun.Before(first.when) {
		t.Errorf("the first life ended because of %v, at %v, and the second began at %v", first.cause, first.when, second.begun)
	}
	if why := b.reason(t); why != cluster.Released {
		t.Errorf("b leads: %s", why)
	}
	if err := <-a.ended; err != nil {
		t.Errorf("a ended with %v", err)
	}
	b.standsBy(t, "b")
}

// TestHandOverAnswers: a leader that hands over answers the requests under way before its context ends, and ends waits.
func TestHandOverAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	came, stopped := make(chan struct{}, 1), make(chan struct{})
	var lives sync.Map // closed channels of those that are to end, by host
	w.stop = sync.OnceFunc(func() { close(stopped) })
	w.api = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/wait" {
			return
		}
		came <- struct{}{}
		<-stopped
		over, _ := lives.Load("a")
		select {
		case <-over.(chan struct{}):
			rw.WriteHeader(http.StatusGone)
		default:
			_, _ = io.WriteString(rw, "as far as it is")
		}
	})
	a := w.join(t, "a")
	lives.Store("a", a.leads(t).over)
	b := w.join(t, "b")
	answer := make(chan string, 2)
	for _, h := range []*host{a, b} {
		go func() { answer <- do(t, request(t, http.MethodPost, h.url+"/wait", nil)) }()
		<-came
	}
	if err := a.AskToLead(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := <-answer; got != "as far as it is" {
			t.Errorf("got %s", got)
		}
	}
	b.leads(t)
}

func awaitSuccessor(h *host) bool {
	deadline := time.NewTimer(soon)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !h.HasSuccessor() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}

// TestKilled: a killed leader is replaced before its lease is over.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.join(t, "a")
	a.leads(t)
	b := w.join(t, "b")
	b.standsBy(t, "a")
	begun := time.Now()
	a.proxy.Stall(postgres.ToServer)
	a.proxy.Cut()
	a.Kill()
	second := b.leads(t)
	t.Logf("b leads %v after a was killed", second.begun.Sub(begun))
	if why := b.reason(t); why != cluster.Killed {
		t.Errorf("b leads: %s", why)
	}
	b.standsBy(t, "b")
}

// TestCutOff: a leader that can't reach the database has stopped its work before another host leads.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]postgres.Direction{"to the server": postgres.ToServer, "to the client": postgres.ToClient} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.join(t, "a")
			first := a.leads(t)
			b := w.join(t, "b")
			b.standsBy(t, "a")
			begun := time.Now()
			a.proxy.Stall(way)
			second := b.leads(t)
			t.Logf("b leads after %v", second.begun.Sub(begun))
			first.ends(t)
			if !errors.Is(first.cause, pgdb.ErrTermOver) || second.begun.Before(first.when) {
				t.Errorf("the first life ended because of %v, %v before the second", first.cause, second.begun.Sub(first.when))
			}
			if why := b.reason(t); why != cluster.Expired {
				t.Errorf("b leads: %s", why)
			}
			a.proxy.Flow()
			a.proxy.Cut()
			a.standsBy(t, "b")
		})
	}
}

// TestWishes: a host leads because it was asked to, and stops leading because it was drained.
func TestWishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.join(t, "a")
	first := a.leads(t)
	b, c := w.join(t, "b"), w.join(t, "c")
	b.standsBy(t, "a")
	c.standsBy(t, "a")
	if err := b.AskToLead(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	second := c.leads(t)
	first.ends(t)
	if !errors.Is(first.cause, pgdb.ErrTermOver) {
		t.Errorf("the first life ended because of %v", first.cause)
	}
	a.standsBy(t, "c")
	for _, name := range []string{"a", "c"} {
		if err := b.Drain(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	b.leads(t)
	second.ends(t)
	c.standsBy(t, "b")
	err := a.Drain(t.Context(), "b")
	if err == nil || !strings.Contains(err.Error(), "no other host") {
		t.Errorf("the last host was drained: %v", err)
	}
	if err := a.Drain(t.Context(), "z"); err == nil || !strings.Contains(err.Error(), `there is no host of the name "z"`) {
		t.Errorf("a host that isn't there: %v", err)
	}
	hosts, err := a.Hosts(t.Context())
	if err != nil || len(hosts) != 3 || hosts[0].Role != jobhost.HostDrained || hosts[1].Role != jobhost.HostLeads || hosts[2].Role != jobhost.HostDrained {
		t.Errorf("%+v, %v", hosts, err)
	}
	b.stop()
	last := a // no host is left that was not drained
	select {
	case <-a.lives:
	case <-c.lives:
		last = c
	case <-time.After(soon):
		t.Fatal("no host leads")
	}
	other := map[*host]*host{a: c, c: a}[last]
	if err := last.AskToLead(t.Context(), other.name); err != nil {
		t.Fatal(err)
	}
	other.leads(t)
}

// TestStandBy: a host that is configured never to lead does not.
func TestStandBy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.join(t, "b", func(cfg *cluster.Config) { cfg.StandBy, cfg.RequestWait = true, 100*time.Millisecond })
	if got := b.get(t, "/"); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "no host of the cluster leads") {
		t.Errorf("without a leader: %s", got)
	}
	if err := b.AskToLead(t.Context(), "b"); err == nil {
		t.Error("it was asked to lead")
	}
	a := w.join(t, "a")
	a.leads(t)
	select {
	case <-b.lives:
		t.Error("b leads")
	default:
	}
}

// TestLifeEnds: an error of Config.Lead ends the host, and another one leads.
func TestLifeEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.join(t, "a")
	first := a.leads(t)
	b := w.join(t, "b")
	b.standsBy(t, "a")
	fault := errors.New("a fault")
	first.end <- fault
	if err := <-a.ended; !errors.Is(err, fault) {
		t.Errorf("a ended with %v", err)
	}
	b.leads(t)
}

// TestLifeOfWant: a life that ends for want of something that may come back, such as an answer of the database, ends the
// term and not the host: another one leads, and this one may again.
func TestLifeOfWant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.join(t, "a")
	first := a.leads(t)
	b := w.join(t, "b")
	b.standsBy(t, "a")
	want := fmt.Errorf("open queue: %w", &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the database takes no writes"})
	first.end <- want
	second := b.leads(t)
	a.standsBy(t, "b")
	second.end <- want
	a.leads(t)
	b.standsBy(t, "a")
}

// TestSameName: a running host keeps its name: another one can't join with it.
func TestSameName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.join(t, "a")
	first.leads(t)
	second := w.join(t, "a")
	select {
	case err := <-second.ended:
		if err == nil || !strings.Contains(err.Error(), `another host of the name "a" is alive`) {
			t.Errorf("got %v", err)
		}
	case <-time.After(soon):
		t.Error("two hosts have the same name")
	}
	first.standsBy(t, "a")
}

// TestJoinWithoutAnswers: a host that the database doesn't answer while it asks for its name says that, or that the name is
// taken if it has learned so before.
func TestJoinWithoutAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.join(t, "a").leads(t)
	second := w.join(t, "a")
	second.proxy.Stall(postgres.ToServer)
	defer second.proxy.Flow()
	select {
	case err := <-second.ended:
		if code := jobhost.CodeOf(err); code != jobhost.CodeConflict && code != jobhost.CodeUnavailable {
			t.Errorf("got %v", err)
		}
	case <-time.After(soon):
		t.Error("it goes on asking")
	}
}
