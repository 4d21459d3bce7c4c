package firestorestate_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// proxy stands between a client and a server, and makes trouble.
type proxy struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex // protects the fields below
	conns  map[net.Conn]bool
	refuse bool
	delay  time.Duration
	chunks int           // how many may still pass before all is cut; < 0 = any number
	gate   chan struct{} // nil = open; closed when it opens
}

// newProxy starts a proxy that ends with the test.
func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: target, listener: l, conns: map[net.Conn]bool{}, chunks: -1}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.stall(false)
		p.refuseAll(true)
		p.running.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil || !p.admit(client, server) {
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		p.running.Go(func() { p.copy(server, client) })
		p.running.Go(func() { p.copy(client, server) })
	}
}

func (p *proxy) admit(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = !p.refuse
	}
	return !p.refuse
}

func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !p.pass() {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// pass waits as long as a chunk has to; false = the connection is cut.
func (p *proxy) pass() bool {
	p.mu.Lock()
	gate, delay := p.gate, p.delay
	if p.chunks == 0 {
		p.cutLocked()
		p.mu.Unlock()
		return false
	}
	if p.chunks > 0 {
		p.chunks--
	}
	p.mu.Unlock()
	if delay > 0 {
		<-time.After(delay)
	}
	if gate != nil {
		<-gate
	}
	return true
}

func (p *proxy) cutLocked() {
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
	p.chunks = -1
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked()
}

// cutAfter ends all connections when so many chunks have passed.
func (p *proxy) cutAfter(chunks int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chunks = chunks
}

// refuseAll cuts, and takes no connection as long as it is on.
func (p *proxy) refuseAll(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse = on; on {
		p.cutLocked()
	}
}

// slow delays each chunk.
func (p *proxy) slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

// stall lets nothing pass as long as it is on.
func (p *proxy) stall(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on && p.gate == nil {
		p.gate = make(chan struct{})
	}
	if !on && p.gate != nil {
		close(p.gate)
		p.gate = nil
	}
}
