// Package cluster joins hosts that share a PostgreSQL: one leads, the others stand by. A [Member] is this host's part in it.
//
//	           ┌───────────── term over, or handed over ────────────┐
//	           ▼                                                    │
//	Run ─► stand by ── no leader ──► take over ─► lead: Config.Lead, Member.Serve
//
//	request ─► Handler ─► the API of this host if it leads; otherwise forward it to the leader, or wait for one
//
// Where to look:
//
//	which host leads    standby.go (find out, take over), watch.go (notice the leader's end at once), term.go (lead, and
//	                    hand over), retire.go (a host that stops)
//	the hosts           membership.go (heartbeats, names, which of them may lead), hosts.go (list, drain, ask to lead),
//	                    folder.go (a restarted host gets its name back)
//	clients' requests   front.go (where a request goes), forward.go (to the leader), local.go (to this host), errors.go
//	between hosts       key.go and peer.go: mutual TLS with the keys in the table of hosts
//
// A host announces its key in the database, so the right to write there decides which hosts belong to the cluster.
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
	// Name is the name of this host. No other running host has it.
	Name string
	// Listen is where this host listens for other hosts, as HOST:PORT; empty = the local address of its connections to the
	// database, at any free port.
	Listen string
	// Advertise is the address that other hosts use, if it is not the one where this host listens.
	Advertise string
	// Folder belongs to this host alone; empty = it has none. A host that is restarted with its folder need not wait for its
	// name. Place identifies the folder, so that a copy of it is recognised: see sqlitedb.Place.
	Folder, Place string
	// StandBy keeps this host from ever leading.
	StandBy bool
	// Version is that of the program.
	Version string
	// Load returns how many tasks this host can run at a time, and how many it runs; nil = none.
	Load func() (slots, busy int)
	// Lead is the life of a host that leads. Its context ends when the term does, or is to end: the cause then wraps
	// [pgdb.ErrTermOver], and otherwise Run is ending. It returns when everything has stopped that works with the term.
	// An error ends Run too, unless it comes of the end of the term, or is unavailable: then what is missing may come back. It
	// is called once for each term.
	Lead func(ctx context.Context, term *pgdb.Term) error
	// Repeatable reports whether it does no harm to carry out a request twice; nil = only those with safe methods.
	Repeatable func(r *http.Request, body []byte) bool
	// RequestWait is how long a request waits while no host leads; 0 = 10 s.
	RequestWait time.Duration
	// Observer is notified of changes.
	Observer Observer
	// Logger; nil = nothing is logged.
	Logger *slog.Logger
}

// Observer holds callbacks, which must not block; nil = no call.
type Observer struct {
	// TookOver is called when this host leads and answers requests. why is [First], [Released], [Expired] or [Killed]; took is
	// the time since it found that there was no leader.
	TookOver func(why string, took time.Duration)
	// Following is called when this host begins to follow a leader.
	Following func(leader string)
}

// Why a host took over.
const (
	First    = pgdb.First    // no host had led before
	Released = pgdb.Released // the leader had given up its term
	Expired  = pgdb.Expired  // the leader had not renewed its lease
	Killed   = "killed"      // the leader's process had ended
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
	address  string      // that other hosts use
	folder   *folder     // nil = it has none
	joined   atomic.Bool // the name is this host's

	wakeup chan struct{} // wakes the loop of terms; has room for one, more would change nothing

	mu      sync.Mutex    // protects the rest
	hosts   []pgdb.Host   // as the database last said
	asked   time.Time     // when it was asked for them
	lost    bool          // heartbeats fail
	term    *pgdb.Term    // in which this host leads; nil = it doesn't
	ended   chan struct{} // closed when the term has ended
	open    bool          // requests can be answered in the term: it isn't about to end
	retired bool          // this host is stopping, and won't lead again
	served  func()        // called when the host first answers in its term; nil = it has
}

// New returns a member, which listens for other hosts already. [Member.Run] runs it.
func New(ctx context.Context, cfg Config) (_ *Member, err error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Name == "" {
		return nil, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "cluster.name", Message: "the host has no name"}
	}
	cfg.RequestWait = cmp.Or(cfg.RequestWait, defaultRequestWait)
	m := &Member{cfg: cfg, log: cfg.Logger, wakeup: make(chan struct{}, 1)}
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

// listen opens the listener for other hosts, and determines the address that they use.
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

// Address is the address that other hosts use to reach this one.
func (m *Member) Address() string { return m.address }

// Listens is where this host listens for others, which may be another address than theirs for it.
func (m *Member) Listens() net.Addr { return m.listener.Addr() }

// Close closes what New opened. It is for members that are not run: Run closes it too.
func (m *Member) Close() error { return errors.Join(m.listener.Close(), m.folder.close()) }

var errEnded = errors.New("the host leaves the cluster")

// Run joins the cluster and takes part in it until ctx ends, or an error that doesn't end with the term. Before it returns
// it has given up its term, if it led.
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
	report, _ := root.Join(context.Background()) // without a deadline there is no error
	if report.Status == scope.StatusFailed {
		err = errors.Join(err, report.Err())
	}
	return err
}

// wake makes the loop of terms look at what has changed.
func (m *Member) wake() {
	select {
	case m.wakeup <- struct{}{}:
	default: // it is about to
	}
}

// sleep waits; false = ctx has ended.
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
