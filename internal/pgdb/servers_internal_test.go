package pgdb

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestServerOrder: the server that took the last connection is tried first, with and without TLS; the others keep their order.
func TestServerOrder(t *testing.T) {
	t.Parallel()
	config := func() *pgconn.Config {
		c, err := pgconn.ParseConfig("postgres://u@a.example:1,b.example:2,c.example:3/d?sslmode=prefer")
		if err != nil {
			t.Fatal(err)
		}
		c.LookupFunc = func(_ context.Context, host string) ([]string, error) {
			return []string{map[string]string{"a.example": "10.0.0.1", "b.example": "10.0.0.2", "c.example": "10.0.0.3"}[host]}, nil
		}
		return c
	}
	var s servers
	check := func(want ...string) {
		t.Helper()
		c := config()
		s.order(c)
		got := []string{c.Host}
		for _, f := range c.Fallbacks {
			if f.Host != got[len(got)-1] {
				got = append(got, f.Host)
			}
		}
		if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || c.TLSConfig == nil || c.Fallbacks[0].TLSConfig != nil {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	check("a.example", "b.example", "c.example")
	c := config()
	s.watch(c)
	for _, name := range []string{"a.example", "b.example", "c.example"} {
		if _, err := c.LookupFunc(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	s.took(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 3), Port: 3})
	check("c.example", "a.example", "b.example")
	s.took(&net.UnixAddr{Name: "/run/x"})
	check("c.example", "a.example", "b.example")
	s.took(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 2})
	check("b.example", "a.example", "c.example")
}

// TestServersHammer: many goroutines connect and order servers at once.
func TestServersHammer(t *testing.T) {
	t.Parallel()
	var s servers
	base, err := pgconn.ParseConfig("postgres://u@127.0.0.1:1,127.0.0.2:2/d?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	s.watch(base)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 500 {
				c := base.Copy()
				if _, err := c.LookupFunc(t.Context(), c.Host); err != nil {
					t.Error(err)
				}
				s.took(&net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%2)), Port: 1 + i%2})
				if s.order(c); len(c.Fallbacks) != 1 || c.Host == c.Fallbacks[0].Host {
					t.Errorf("%s and %+v", c.Host, c.Fallbacks)
				}
			}
		})
	}
	all.Wait()
}
