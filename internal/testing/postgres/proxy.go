package postgres

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy passes connections on to a server, until a test cuts or stalls them.
type Proxy struct {
	target  atomic.Pointer[string]
	address string
	done    sync.WaitGroup

	// after is how many bytes still pass in a direction before all connections are cut; below zero = any number.
	after [2]atomic.Int64
	every [2]atomic.Int64 // what after is set to when connections were cut

	trips tripCounter
	delay atomic.Int64 // of each message to the server

	mu       sync.Mutex   // protects the rest
	listener net.Listener // nil = new connections are refused
	conns    map[net.Conn]struct{}
	hole     [2]bool    // bytes of the direction vanish, as with a partition
	flows    *sync.Cond // a hole was closed
	ended    bool
}

// Direction is where bytes go.
type Direction int

// The directions.
const (
	ToServer Direction = iota
	ToClient
)

// NewProxy starts a proxy in front of an address.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{address: l.Addr().String(), listener: l, conns: map[net.Conn]struct{}{}}
	p.target.Store(&target)
	p.flows = sync.NewCond(&p.mu)
	p.CutEvery(ToServer, -1)
	p.CutEvery(ToClient, -1)
	p.done.Go(func() { p.accept(l) })
	t.Cleanup(p.Close)
	return p
}

// Port is where the proxy listens.
func (p *Proxy) Port() int { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(p.address)).Port }

// Address is where the proxy listens.
func (p *Proxy) Address() string { return p.address }

// Refuse refuses new connections, as where nothing listens; Listen ends it.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
}

// Listen takes connections again after Refuse.
func (p *Proxy) Listen(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.ended {
		return
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	p.listener = l
	p.done.Go(func() { p.accept(l) })
}

func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", *p.target.Load())
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.add(client, server) {
			return
		}
		trips := p.trips.add()
		p.done.Go(func() { p.copy(server, client, ToServer, trips) })
		p.done.Go(func() { p.copy(client, server, ToClient, trips) })
	}
}

func (p *Proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.ended {
			_ = c.Close()
			continue
		}
		p.conns[c] = struct{}{}
	}
	return !p.ended
}

// copy passes bytes on, as long as it may.
func (p *Proxy) copy(to, from net.Conn, way Direction, trips *roundTrips) {
	defer p.drop(to, from)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			trips.pass(way)
		}
		if n > 0 && !p.pass(to, buf[:n], way) || err != nil {
			return
		}
	}
}

// Slow makes each message to the server take as long, and with it each round trip.
func (p *Proxy) Slow(delay time.Duration) { p.delay.Store(int64(delay)) }

// pass writes what may pass and reports whether the connection goes on.
func (p *Proxy) pass(to io.Writer, b []byte, way Direction) bool {
	if way == ToServer {
		time.Sleep(time.Duration(p.delay.Load()))
	}
	p.mu.Lock()
	for p.hole[way] && !p.ended {
		p.flows.Wait()
	}
	p.mu.Unlock()
	for {
		left := p.after[way].Load()
		if left < 0 {
			break
		}
		may := min(int64(len(b)), left)
		if !p.after[way].CompareAndSwap(left, left-may) {
			continue
		}
		if b = b[:may]; left == may {
			_, _ = to.Write(b)
			p.Cut()
			return false
		}
		break
	}
	_, err := to.Write(b)
	return err == nil
}

func (p *Proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.conns, c)
	}
}

// Redirect passes connections on to another server from now on, and cuts those that there are.
func (p *Proxy) Redirect(target string) {
	p.target.Store(&target)
	p.Cut()
}

// Cut closes all connections that there are, and lets new ones pass.
func (p *Proxy) Cut() {
	for way := range p.after {
		p.after[way].Store(p.every[way].Load())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// CutAfter cuts all connections once so many more bytes have gone in a direction.
func (p *Proxy) CutAfter(way Direction, bytes int64) { p.after[way].Store(bytes) }

// CutEvery cuts all connections each time so many bytes have gone in a direction; below zero = not any more.
func (p *Proxy) CutEvery(way Direction, bytes int64) {
	p.every[way].Store(bytes)
	p.after[way].Store(bytes)
}

// Stall holds back all bytes of a direction, and keeps the connections open; Flow ends it.
func (p *Proxy) Stall(way Direction) {
	p.mu.Lock()
	p.hole[way] = true
	p.mu.Unlock()
}

// Flow lets bytes of both directions pass again.
func (p *Proxy) Flow() {
	p.mu.Lock()
	p.hole = [2]bool{}
	p.mu.Unlock()
	p.flows.Broadcast()
}

// Close closes all connections, and refuses new ones.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.ended = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.flows.Broadcast()
	p.Refuse()
	p.done.Wait()
}
