package cluster_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost/host/cluster"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

func TestMain(m *testing.M) { postgres.Main(m) }

// lease is the usual one: a shorter one would end on a busy machine by itself.
const lease = 5 * time.Second

// soon is how long a test waits for what happens within a second or two.
const soon = time.Minute

// world is a database that hosts share.
type world struct {
	server *postgres.Server
	schema string
	user   string       // of the database; "" = its superuser
	api    http.Handler // of each leader; nil = it says its name
	stop   func()       // ends waits of api; nil = it has none

	schemas []pgdb.Schema                                                // besides that of the cluster
	life    func(*host) func(ctx context.Context, term *pgdb.Term) error // of each leader; nil = it serves api
}

func newWorld(t testing.TB) *world {
	t.Helper()
	server := postgres.Shared(t)
	return &world{server: server, schema: server.Schema(t)}
}

// host is a member with what a test knows of it.
type host struct {
	*cluster.Member
	name  string
	db    *pgdb.DB
	proxy *postgres.Proxy // to the database
	url   string          // of its API
	lives chan *life
	took  chan string // why it took over
	stop  context.CancelFunc
	ended chan error
}

// life is a term in which a host leads.
type life struct {
	term  *pgdb.Term
	begun time.Time
	over  chan struct{} // closed when it is to end
	when  time.Time     // it was to end
	cause error
	end   chan error // lets it end by itself
}

func (w *world) url(port int) string {
	url := w.server.URLAt(port)
	if w.user != "" {
		url = strings.Replace(url, "postgres@", w.user+"@", 1)
	}
	return url
}

func (w *world) open(t testing.TB, name string, port int) *pgdb.DB {
	t.Helper()
	db, err := pgdb.Open(t.Context(), pgdb.Config{
		URL: w.url(port), Schema: w.schema, Host: name, Lease: lease, Relaxed: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.Migrate(t.Context(), w.schemas); err != nil {
		t.Fatal(err)
	}
	return db
}

// join starts a host that joins the cluster, and leaves it with the test.
func (w *world) join(t testing.TB, name string, options ...func(*cluster.Config)) *host {
	t.Helper()
	h := &host{name: name, proxy: postgres.NewProxy(t, w.server.Address()), lives: make(chan *life, 16), took: make(chan string, 16), ended: make(chan error, 1)}
	h.db = w.open(t, name, h.proxy.Port())
	cfg := cluster.Config{
		DB: h.db, Name: name, Version: "test", Lead: h.lead(w), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)).With("on", name),
		Observer: cluster.Observer{TookOver: func(why string, _ time.Duration) { h.took <- why }},
	}
	if w.life != nil {
		cfg.Lead = w.life(h)
	}
	for _, o := range options {
		o(&cfg)
	}
	var err error
	if h.Member, err = cluster.New(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	api := httptest.NewServer(h.Handler())
	h.url = api.URL
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	var running sync.WaitGroup
	running.Go(func() { h.ended <- h.Run(ctx) })
	t.Cleanup(func() {
		stop()
		h.proxy.Flow()
		running.Wait()
		api.CloseClientConnections()
		api.Close()
	})
	return h
}

// lead is the life of a host: it serves until it is to end.
func (h *host) lead(w *world) func(context.Context, *pgdb.Term) error {
	return func(ctx context.Context, term *pgdb.Term) error {
		l := &life{term: term, begun: time.Now(), over: make(chan struct{}), end: make(chan error, 1)}
		api := w.api
		if api == nil {
			api = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				fmt.Fprint(rw, h.name)
			})
		}
		stop := w.stop
		if stop == nil {
			stop = func() {}
		}
		if err := h.Serve(term, api, stop); err != nil {
			return err
		}
		h.lives <- l
		var err error
		select {
		case <-ctx.Done():
		case err = <-l.end:
		}
		l.when, l.cause = time.Now(), context.Cause(ctx)
		close(l.over)
		return err
	}
}

// leads waits until the host leads.
func (h *host) leads(t *testing.T) *life {
	t.Helper()
	select {
	case l := <-h.lives:
		return l
	case err := <-h.ended:
		t.Fatalf("%s has ended: %v", h.name, err)
	case <-time.After(soon):
		t.Fatalf("%s does not lead", h.name)
	}
	return nil
}

// standsBy waits until the host passes on what it is asked to another.
func (h *host) standsBy(t *testing.T, leader string) {
	t.Helper()
	if got := h.get(t, "/"); got != leader {
		t.Fatalf("%s answers as %q, want %s", h.name, got, leader)
	}
}

// ends waits until a life is to end.
func (l *life) ends(t *testing.T) {
	t.Helper()
	select {
	case <-l.over:
	case <-time.After(soon):
		t.Fatal("the life does not end")
	}
}

func (h *host) get(t *testing.T, path string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, r)
}

func do(t *testing.T, r *http.Request) string {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Sprintf("%d %s", resp.StatusCode, strings.TrimSpace(string(text)))
	}
	return string(text)
}

// reason returns why the host took over.
func (h *host) reason(t *testing.T) string {
	t.Helper()
	select {
	case why := <-h.took:
		return why
	case <-time.After(soon):
		t.Fatalf("%s did not take over", h.name)
		return ""
	}
}
