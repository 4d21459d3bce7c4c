package pgdb

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// servers remembers which of the servers in a URL took the last connection, and puts it first. Otherwise each new
// connection would wait for the servers before it that don't answer, longer than the lease lasts.
type servers struct {
	mu    sync.Mutex        // protects the rest
	names map[string]string // as the URL has them, by the addresses that they stand for
	good  server            // of the last connection; zero = there was none
}

// server is one of those in the URL.
type server struct {
	name string
	port uint16
}

// watch adds hooks to a configuration that note where its connections go.
func (s *servers) watch(c *pgconn.Config) {
	lookUp, validate := c.LookupFunc, c.ValidateConnect
	c.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		addresses, err := lookUp(ctx, host)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, a := range addresses {
			if s.names == nil {
				s.names = map[string]string{}
			}
			s.names[a] = host
		}
		return addresses, err
	}
	c.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		err := validate(ctx, conn)
		if err == nil {
			s.took(conn.Conn().RemoteAddr())
		}
		return err
	}
}

// took notes that the server at an address took a connection.
func (s *servers) took(at net.Addr) {
	host, text, err := net.SplitHostPort(at.String())
	if err != nil {
		return // a socket of this machine
	}
	port, _ := strconv.ParseUint(text, 10, 16)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.good = server{s.names[host], uint16(port)}
}

// order puts the server that took the last connection first.
func (s *servers) order(c *pgconn.Config) {
	s.mu.Lock()
	good := s.good
	s.mu.Unlock()
	all := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	rank := func(f *pgconn.FallbackConfig) int {
		if (server{f.Host, f.Port}) == good {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b *pgconn.FallbackConfig) int { return rank(a) - rank(b) })
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
}

// serverCount is how many servers a configuration tries. A server may count twice, with and without TLS.
func serverCount(c *pgconn.Config) int { return 1 + len(c.Fallbacks) }
