// Package api is the HTTP face of a host: it turns requests into calls of a
// [jobhost.Server], and its answers into JSON. There is one table of routes
// (routes.go); the OpenAPI document is made from it. What a request must pass
// before a route sees it stands in guard.go, in order.
package api

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
	"github.com/jobhost/jobhost/internal/budget"
)

// Config says what an API serves, and to whom.
type Config struct {
	// Server returns what answers, or why nothing does yet. It is asked until it has answered.
	Server func() (jobhost.Server, error)
	// Token is what calls that change something must carry: see [CheckToken].
	Token string
	// OpenReads lets calls from this machine read without the token. It can't distinguish
	// them from what a proxy on this machine passes on.
	OpenReads bool
	// GuardMetrics asks for the token for /metrics.
	GuardMetrics bool
	// AllowedHosts are names to accept in the Host header besides those of
	// loopback, in lower case, without port.
	AllowedHosts []string
	// MaxPayload bounds a job's payload, in bytes; 0 = 1 MiB. Bodies may be
	// as large as that payload in base64, and 64 KiB more.
	MaxPayload int
	// Metrics serves /metrics; nil = there is no such route.
	Metrics http.Handler
	// Ready reports whether the host accepts jobs; nil = always.
	Ready func() error
	// Impaired returns what doesn't work of a host that accepts jobs; nil = everything does.
	Impaired func() []string
	// Whole is the size up to which the server holds a payload or result in memory while it is
	// read, in bytes; 0 = 64 KiB. Larger ones come in pieces.
	Whole int
	// Observe is called with every answer, with the path of the route ("" = none
	// matched), and must not block; nil = none. Answers to waits and streams
	// count with all their time.
	Observe func(route string, status int, took time.Duration)
	// Logger; nil = nothing is logged.
	Logger *slog.Logger
	Limits Limits
}

// Limits bound what clients can make the API hold. Zero values are defaults.
type Limits struct {
	Streams int   // event streams at once; 0 = 256; beyond it: exhausted
	Waits   int   // requests that wait for a job at once; 0 = 2,048; beyond it: exhausted
	Answers int64 // bytes of answers that are made and read at once; 0 = 48 MiB; beyond it they wait, and then: unavailable
	// The same for all calls without the token together, which count for these only.
	AnonymousStreams int           // 0 = 32
	AnonymousWaits   int           // 0 = 128
	AnonymousAnswers int64         // 0 = 16 MiB
	Uploads          int           // uploads at once; 0 = 16; beyond it: exhausted
	Batches          int           // batches at once; 0 = 16, each holds up to 4 MiB and one line; beyond it: exhausted
	BodyBytes        int64         // bodies of single submits in memory at once, and messages that wait for room; 0 = 64 MiB; beyond it: unavailable
	MaxWait          time.Duration // most that ?wait= may ask for; 0 = 5m
	KeepAlive        time.Duration // silence after which a stream sends a comment; 0 = 15s
	Stall            time.Duration // how long a write to a client, or a read of a line of a batch, may take; 0 = 30s
}

func (l *Limits) setDefaults() {
	setDefault(&l.Streams, 256)
	setDefault(&l.Waits, 2048)
	setDefault(&l.Answers, 48<<20)
	setDefault(&l.AnonymousStreams, 32)
	setDefault(&l.AnonymousWaits, 128)
	setDefault(&l.AnonymousAnswers, 16<<20)
	setDefault(&l.Uploads, 16)
	setDefault(&l.Batches, 16)
	setDefault(&l.BodyBytes, 64<<20)
	setDefault(&l.MaxWait, 5*time.Minute)
	setDefault(&l.KeepAlive, 15*time.Second)
	setDefault(&l.Stall, 30*time.Second)
}

func setDefault[N int | int64 | time.Duration](n *N, value N) {
	if *n <= 0 {
		*n = value
	}
}

// API serves the HTTP API. It is safe for use by many goroutines.
type API struct {
	cfg     Config
	server  jobhost.Server // set once by connect, which every handler that uses it comes after
	log     *slog.Logger
	maxBody int
	mux     *http.ServeMux
	openapi []byte
	guard   guard
	epoch   string // of the numbers of events: another one after a restart

	connecting sync.Mutex  // taken to set server
	connected  atomic.Bool // server is set

	trusted, anonymous *quota // of callers with the token, and without
	batches, uploads   budget.Budget
	bodies             budget.Budget // in bytes
	parked             budget.Budget // bytes of messages that wait for room
	memory             sync.Pool

	// stopping ends waits and streams; see Stop.
	stopping context.Context
	stop     context.CancelFunc
}

// New returns an API that is ready to serve. Errors: invalid, for a config
// without server and for weak tokens.
func New(cfg Config) (*API, error) {
	if cfg.Server == nil {
		return nil, errors.New("configure api: no server")
	}
	if err := CheckToken(cfg.Token); err != nil {
		return nil, err
	}
	setDefault(&cfg.MaxPayload, 1<<20)
	setDefault(&cfg.Whole, 64<<10)
	cfg.Limits.setDefaults()
	a := &API{
		cfg:     cfg,
		log:     cfg.Logger,
		maxBody: (cfg.MaxPayload+2)/3*4 + 64<<10,
		epoch:   strconv.FormatUint(rand.Uint64(), 36),
		guard:   newGuard(cfg),
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	l := &cfg.Limits
	a.trusted = newQuota(l.Streams, l.Waits, l.Answers, l.Stall)
	a.anonymous = newQuota(l.AnonymousStreams, l.AnonymousWaits, l.AnonymousAnswers, l.Stall)
	a.uploads.Limit = int64(cfg.Limits.Uploads)
	a.batches.Limit = int64(cfg.Limits.Batches)
	a.bodies.Limit = max(cfg.Limits.BodyBytes, int64(a.maxBody))
	a.parked.Limit = max(cfg.Limits.BodyBytes, jobhost.MaxFiberMessage)
	a.memory.New = func() any { return &memory{decoder: wire.NewDecoder(cfg.MaxPayload)} }
	a.stopping, a.stop = context.WithCancel(context.Background())
	table := a.routes()
	a.mux = a.newMux(table)
	var err error
	a.openapi, err = describe(table)
	return a, err
}

// Serving returns a [Config.Server] for a server that is there from the start.
func Serving(server jobhost.Server) func() (jobhost.Server, error) {
	return func() (jobhost.Server, error) { return server, nil }
}

// connect finds the server, which a host has only once it runs.
func (a *API) connect() error {
	if a.connected.Load() {
		return nil
	}
	a.connecting.Lock()
	defer a.connecting.Unlock()
	if a.connected.Load() {
		return nil
	}
	server, err := a.cfg.Server()
	if err != nil {
		return err
	}
	a.server = server
	a.connected.Store(true)
	return nil
}

// Stop ends event streams, with an event that says so, and requests that wait,
// with the job as it is. Everything else goes on. It is what a graceful
// shutdown of the HTTP server begins with: [Serve] does it.
func (a *API) Stop() { a.stop() }

// memory is what a submit needs while it runs, kept for the next one.
type memory struct {
	decoder *wire.Decoder
	in, out []byte
}

// keepMemory is the largest buffer that is kept.
const keepMemory = 64 << 10

func (a *API) borrow() *memory { return a.memory.Get().(*memory) }

func (a *API) giveBack(m *memory) {
	if cap(m.in) > keepMemory {
		m.in = nil
	}
	if cap(m.out) > keepMemory {
		m.out = nil
	}
	a.memory.Put(m)
}
