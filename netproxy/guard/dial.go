package guard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jobhost/jobhost/netproxy/policy"
)

const (
	// maxAddrs is how many addresses of a name are considered.
	maxAddrs = 16
	// headStart is how long an address is tried before the next one is tried
	// too (RFC 8305, 5, recommends 250 ms).
	headStart = 250 * time.Millisecond
	// ownFor is how long this machine's addresses are cached.
	ownFor = time.Second
)

// dialer resolves names, judges addresses, and connects to one that passes.
type dialer struct {
	policy     policy.Policy
	dnsTime    time.Duration
	dialTime   time.Duration
	perRequest int64
	proxied    bool
	resolver   Resolver
	forbidden  func() []netip.AddrPort
	dial       func(context.Context, netip.AddrPort) (net.Conn, error)
	own        own
}

func newDialer(cfg *Config) *dialer {
	d := &dialer{
		policy: cfg.Policy, dnsTime: cfg.DNSTimeout, dialTime: cfg.ConnectTimeout, perRequest: cfg.BytesPerRequest,
		proxied: cfg.Proxy != nil, resolver: cfg.Resolver, forbidden: cfg.Forbidden, dial: cfg.Dial, own: own{list: cfg.Own},
	}
	if d.dial == nil {
		// The address is judged once more, right before the socket connects.
		tcp := &net.Dialer{ControlContext: d.control}
		d.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return tcp.DialContext(ctx, "tcp", to.String())
		}
	}
	return d
}

// dialContext connects to one of the addresses of a host.
func (d *dialer) dialContext(ctx context.Context, _, address string) (net.Conn, error) {
	name, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	addrs, err := d.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	to, err := d.passing(addrs, uint16(port))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.dialTime)
	defer cancel()
	return d.race(ctx, to)
}

// dialMetered is dialContext for connections that may receive only so much for each request.
func (d *dialer) dialMetered(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: conn, perRequest: d.perRequest}, nil
}

// resolve returns the addresses of a name; if name is an address, that address.
func (d *dialer) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{addr}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.dnsTime)
	defer cancel()
	addrs, err := d.resolver.LookupNetIP(ctx, "ip", name)
	switch {
	case err == nil && len(addrs) == 0:
		return nil, &net.DNSError{Err: "no addresses", Name: name, IsNotFound: true}
	case err != nil && ctx.Err() != nil:
		return nil, &net.DNSError{UnwrapErr: err, Err: "timeout", Name: name, IsTimeout: true}
	}
	return addrs, err
}

// passing returns the addresses that may be dialled; if none may, the error says why.
func (d *dialer) passing(addrs []netip.Addr, port uint16) ([]netip.AddrPort, error) {
	var pass []netip.AddrPort
	var denied error
	for _, addr := range addrs[:min(len(addrs), maxAddrs)] {
		to := netip.AddrPortFrom(addr.Unmap(), port)
		if err := d.judge(netip.AddrPortFrom(addr, port)); err != nil {
			denied = err
			continue
		}
		pass = append(pass, to)
	}
	if len(pass) == 0 {
		return nil, denied
	}
	return pass, nil
}

// control judges the address of a connection that is about to be established.
func (d *dialer) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &policy.SpecialError{Kind: "not an address"}
	}
	return d.judge(to)
}

// judge returns an error that says why an address may not be dialled; nil = it may.
func (d *dialer) judge(to netip.AddrPort) error {
	if d.proxied {
		return nil // the address is the proxy's
	}
	if err := d.policy.JudgeAddr(to.Addr()); err != nil {
		return err
	}
	mine, err := d.own.has(to.Addr())
	if err != nil {
		return err
	}
	if d.isForbidden(to, mine) {
		return &policy.SpecialError{Addr: to.Addr().Unmap(), Kind: "where this host is controlled"}
	}
	if mine {
		return d.policy.JudgeOwn(to.Addr())
	}
	return nil
}

func (d *dialer) isForbidden(to netip.AddrPort, mine bool) bool {
	if d.forbidden == nil {
		return false
	}
	addr := to.Addr().Unmap()
	return slices.ContainsFunc(d.forbidden(), func(f netip.AddrPort) bool {
		at := f.Addr().Unmap()
		all := !at.IsValid() || at.IsUnspecified()
		return f.Port() == to.Port() && (at == addr || all && (mine || addr.IsLoopback() || addr.IsUnspecified()))
	})
}

// own caches the addresses of this machine.
type own struct {
	list func() ([]net.Addr, error)

	mu    sync.Mutex // protects the following
	addrs []netip.Addr
	at    time.Time
}

// has reports whether an address is one of this machine's.
func (o *own) has(addr netip.Addr) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); o.at.IsZero() || now.Sub(o.at) > ownFor {
		list, err := o.list()
		if err != nil {
			return false, err
		}
		o.addrs = o.addrs[:0]
		for _, a := range list {
			if ip, ok := a.(*net.IPNet); ok {
				if one, ok := netip.AddrFromSlice(ip.IP); ok {
					o.addrs = append(o.addrs, one.Unmap())
				}
			}
		}
		o.at = now
	}
	return slices.Contains(o.addrs, addr.Unmap()), nil
}

// race connects to the first address that answers. The next one is tried when an
// earlier one has failed, or after the head start.
func (d *dialer) race(ctx context.Context, to []netip.AddrPort) (net.Conn, error) {
	if len(to) == 1 {
		return d.dial(ctx, to[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, len(to)) // buffered, so that no sender blocks
	var dials sync.WaitGroup
	defer func() {
		// The losers end with ctx, and are closed.
		cancel()
		dials.Wait()
		close(results)
		for r := range results {
			if r.conn != nil {
				_ = r.conn.Close()
			}
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var errs []error
	for started := 0; ; {
		select {
		case <-timer.C:
		case r := <-results:
			if r.err == nil {
				return r.conn, nil
			}
			if errs = append(errs, r.err); len(errs) == len(to) {
				return nil, errors.Join(errs...)
			}
		}
		if started < len(to) {
			next := to[started]
			started++
			dials.Add(1)
			go func() {
				defer dials.Done()
				conn, err := d.dial(ctx, next)
				results <- result{conn, err}
			}()
			timer.Reset(headStart)
		}
	}
}
