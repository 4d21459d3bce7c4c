package redispayload_test

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
	"github.com/jobhost/jobhost/state/payload/redispayload"
)

// start starts a server on a socket of its own that ends with the test, and
// returns its URL.
func start(t testing.TB, appendOnly string) string {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed (Debian: apt-get install redis-server)")
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "redis.sock")
	cmd := exec.Command(program, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", appendOnly, "--appendfsync", "always")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	deadline := time.Now().Add(20 * time.Second)
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
			return "unix://" + socket
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server did not start: %v", err)
		}
		<-time.After(5 * time.Millisecond) // a server says nowhere else that it listens
	}
}

// places knows where the suite's stores are.
type places struct{ m sync.Map }

type place struct {
	cfg    redispayload.Config
	client *redis.Client
}

func (p *places) open(t testing.TB, cfg redispayload.Config) payload.Store {
	t.Helper()
	s, err := redispayload.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	opts, err := redis.ParseURL(cfg.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(opts)
	t.Cleanup(func() { _ = errors.Join(s.Close(), client.Close()) })
	p.m.Store(s, place{cfg, client})
	return s
}

func (p *places) of(s payload.Store) place {
	got, _ := p.m.Load(s)
	return got.(place)
}

func TestStore(t *testing.T) {
	url := start(t, "yes")
	var p places
	count := 0
	var mu sync.Mutex // protects count
	config := func() redispayload.Config {
		mu.Lock()
		defer mu.Unlock()
		count++
		return redispayload.Config{URL: url, Prefix: fmt.Sprintf("test-%d:", count), TTL: time.Hour}
	}
	payloadtest.Run(t, payloadtest.Harness{
		Open:  func(t testing.TB) payload.Store { return p.open(t, config()) },
		Again: func(t testing.TB, s payload.Store) payload.Store { return p.open(t, p.of(s).cfg) },
		Damage: func(t testing.TB, s payload.Store, key string) {
			at := p.of(s)
			name := at.cfg.Prefix + "{" + key + "}:0"
			data, err := at.client.Get(t.Context(), name).Bytes()
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)/2] ^= 1
			if err := at.client.Set(t.Context(), name, data, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
		},
		Left: func(t testing.TB, s payload.Store) (left []string) {
			at := p.of(s)
			names, err := at.client.Keys(t.Context(), at.cfg.Prefix+"*").Result()
			if err != nil {
				t.Fatal(err)
			}
			heads := map[string]bool{}
			for _, name := range names {
				heads[name] = true
			}
			for _, name := range names {
				if head, _, piece := strings.Cut(name, "}:"); piece && !heads[head+"}"] {
					left = append(left, name)
				}
			}
			return left
		},
		Gone: func(t testing.TB) payload.Store {
			return p.open(t, redispayload.Config{URL: "unix://" + filepath.Join(t.TempDir(), "none.sock"), TTL: time.Hour})
		},
	})
}

// TestNotDurable shows that a server that keeps nothing is refused.
func TestNotDurable(t *testing.T) {
	t.Parallel()
	url := start(t, "no")
	for _, c := range []struct {
		name    string
		relaxed bool
	}{{"strict", false}, {"relaxed", true}} {
		t.Run(c.name, func(t *testing.T) {
			s, err := redispayload.Open(redispayload.Config{URL: url, TTL: time.Hour, Relaxed: c.relaxed})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			o, err := s.Create(t.Context(), payload.NewKey(time.Now()))
			if err != nil {
				t.Fatal(err)
			}
			defer o.Abort()
			if err := o.Commit(); (err == nil) != c.relaxed || err != nil && !strings.Contains(err.Error(), "append-only") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestExpiry shows that everything but the index expires.
func TestExpiry(t *testing.T) {
	t.Parallel()
	var p places
	s := p.open(t, redispayload.Config{URL: start(t, "yes"), Prefix: "p:", TTL: time.Hour})
	o, err := s.Create(t.Context(), payload.NewKey(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write(make([]byte, 3<<20)); err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	client := p.of(s).client
	names, err := client.Keys(t.Context(), "*").Result()
	if err != nil || len(names) != 5 {
		t.Fatalf("got %v, %v", names, err)
	}
	for _, name := range names {
		ttl := client.TTL(t.Context(), name).Val()
		if index := name == "p:{index}"; index != (ttl < 0) || ttl > time.Hour {
			t.Errorf("%s expires in %v", name, ttl)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, cfg := range []redispayload.Config{
		{URL: "", TTL: time.Hour},
		{URL: "http://a", TTL: time.Hour},
		{URL: "redis://user:pass word@host:x", TTL: time.Hour},
		{URL: "redis://localhost", TTL: time.Second},
	} {
		_, err := redispayload.Open(cfg)
		if err == nil || strings.Contains(err.Error(), "pass word") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
