// Package cluster joins hosts that share a PostgreSQL: one leads, and the others stand by. A [Member] is this host's
// part in it. It runs the loop of terms (term.go), in each of which it leads once; it follows who leads (leader.go,
// watch.go), keeps the row of this host in the table of hosts (membership.go), and its [Member.Handler] passes on to
// the leader what clients ask of this host (front.go, forward.go). Hosts talk to each other over mutual TLS with the
// keys that stand in the table (key.go, peer.go).
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// Config says which host of a cluster this is.
type Config struct {
	// DB is the database that the hosts share. The caller closes it after Run.
	DB *pgdb.DB
	// Name is this host's, which no other host that lives has.
	Name string
	// Listen is where other hosts reach this one, as HOST:PORT; empty = at this end of the connections to the database,
	// with any free port.
	Listen string
	// Advertise is where they find it, if that is not where it listens.
	Advertise string
	// Folder is the host's own, which no other process that lives has; empty = it has none. With it a host that is
	// started again need not wait for its name. Place is where the folder is, as the disk and this run of the machine say.
	Folder, Place string
	// StandBy keeps this host from ever leading.
	StandBy bool
	// Version is that of the program.
	Version string
	// Load tells how many tasks this host can run and how many it runs; nil = none.
	Load func() (slots, busy int)
	// Lead is the life of a host that leads. Its context ends when the term does, or is to end: the cause then wraps
	// [pgdb.ErrTermOver], and otherwise Run is ending. It returns when everything has stopped that works with the term.
	// An error ends Run too, unless it comes of the end of the term. It is called once for each term.
	Lead func(ctx context.Context, term *pgdb.Term) error
	// Repeatable tells whether a request may be carried out twice, by its body; nil = none but those of safe methods.
	Repeatable func(r *http.Request, body []byte) bool
	// Patience is how long a request waits while no host leads; 0 = 10 s.
	Patience time.Duration
	// Observer is notified of what happens.
	Observer Observer
	// Logger; nil = nothing is logged.
	Logger *slog.Logger
}

// Observer holds what is called as it happens, and must not block; nil = it isn't called.
type Observer struct {
	// TookOver is called when this host leads and answers. Why is [First], [Released], [Expired] or [Killed]; took is the
	// time since it found that there was no leader.
	TookOver func(why string, took time.Duration)
	// Following is called when this host begins to stand by for a leader.
	Following func(leader string)
}

// Why a host took over.
const (
	First    = "first"    // no host had led before
	Released = "released" // the leader had given up its term
	Expired  = "expired"  // the leader had not renewed its lease
	Killed   = "killed"   // the leader's process had ended
)

// Member is a host of a cluster. Its methods are safe for use by many goroutines.
type Member struct {
	cfg      Config
	log      *slog.Logger
	identity *identity
	keys     keyring
	front    *front
	listener net.Listener
	peers    *http.Server
	address  string      // where others find this host
	folder   *folder     // nil = it has none
	joined   atomic.Bool // it has its name

	look chan struct{} // says that the loop has something to look at; holds one, more would say nothing new

	mu      sync.Mutex    // protects the rest
	hosts   []pgdb.Host   // at the last heartbeat
	lost    bool          // heartbeats fail
	term    *pgdb.Term    // in which this host leads; nil = it doesn't
	ended   chan struct{} // closed when the term has ended
	open    bool          // the term is not about to end
	retired bool          // this host leads no more
	served  func()        // called when the host first answers in its term; nil = it has
}

// New returns a member, which listens from then on. [Member.Run] runs it.
func New(ctx context.Context, cfg Config) (_ *Member, err error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Name == "" {
		return nil, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "cluster.name", Message: "the host has no name"}
	}
	cfg.Patience = cmp.Or(cfg.Patience, defaultPatience)
	m := &Member{cfg: cfg, log: cfg.Logger, look: make(chan struct{}, 1)}
	if m.identity, err = newIdentity(cfg.Name); err != nil {
		return nil, err
	}
	m.keys.ask = cfg.DB.Hosts
	m.front = newFront(m)
	if cfg.Folder != "" {
		if m.folder, err = openFolder(cfg.Folder, cfg.Place, m.identity.public); err != nil {
			return nil, err
		}
		if m.folder == nil {
			m.log.Warn("the folder is that of another host, which lives: this one has to wait for its name if it is killed", logkey.Path, cfg.Folder)
		}
	}
	if err := m.listen(ctx); err != nil {
		return nil, errors.Join(err, m.folder.close())
	}
	m.peers = m.newPeerServer()
	cfg.DB.SetAddress(m.address)
	return m, nil
}

// listen opens what other hosts reach this one by, and finds out its address.
func (m *Member) listen(ctx context.Context) error {
	listen, here := m.cfg.Listen, net.IPv4(127, 0, 0, 1)
	local, err := m.cfg.DB.LocalAddr(ctx)
	if err != nil {
		return err
	}
	if local != nil {
		here = local.IP
	}
	if listen == "" {
		listen = net.JoinHostPort(here.String(), "0")
	}
	if m.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", listen); err != nil {
		return &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "cluster.listen", Message: fmt.Sprintf("listen on %s for other hosts: %v", listen, err),
			Hint: "set listen in [cluster] to an address of this machine with a free port",
		}
	}
	bound, _ := m.listener.Addr().(*net.TCPAddr)
	if bound.IP.IsUnspecified() {
		bound = &net.TCPAddr{IP: here, Port: bound.Port}
	}
	m.address = bound.String()
	if m.cfg.Advertise != "" {
		m.address = m.cfg.Advertise
	}
	return nil
}

// Address is where other hosts find this one.
func (m *Member) Address() string { return m.address }

// Listens is where this host listens for others, which may be another address than theirs for it.
func (m *Member) Listens() net.Addr { return m.listener.Addr() }

// Close closes what New has opened, if Run is not called.
func (m *Member) Close() error { return errors.Join(m.listener.Close(), m.folder.close()) }

var errEnded = errors.New("the host leaves the cluster")

// Run is the life of a host in its cluster, until ctx ends or an error that isn't of one term. Before it returns it has
// given up its term, if it led.
func (m *Member) Run(ctx context.Context) error {
	root := scope.New(context.WithoutCancel(ctx), "cluster")
	err := root.Go("peers", func(context.Context) error { return m.servePeers() })
	if err == nil {
		err = m.join(ctx)
	}
	if err == nil {
		err = root.Go("heartbeat", func(ctx context.Context) error { m.beat(ctx); return nil })
	}
	if err == nil {
		err = m.terms(ctx)
	}
	root.Cancel(errEnded)
	m.front.end()
	m.leave(context.WithoutCancel(ctx))
	shutdown(m.peers)
	err = errors.Join(err, m.folder.close())
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = nil
	}
	report, _ := root.Join(context.Background()) // without an end it waits to the end
	if report.Status == scope.StatusFailed {
		err = errors.Join(err, report.Err())
	}
	return err
}

// notice makes the loop look at what has changed.
func (m *Member) notice() {
	select {
	case m.look <- struct{}{}:
	default: // it is going to
	}
}

// sleep waits, and reports whether ctx has not ended meanwhile.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
