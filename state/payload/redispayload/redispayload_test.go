package redispayload_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
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

// server is a server on a socket of its own.
type server struct {
	url string
	cmd *exec.Cmd
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// start starts a server that ends with the test, and returns its URL.
func start(t testing.TB, appendOnly string) string {
	t.Helper()
	return launch(t, t.TempDir(), appendOnly).url
}

// launch starts a server with its files in a folder.
func launch(t testing.TB, dir, appendOnly string) *server {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed (Debian: apt-get install redis-server)")
	}
	socket := filepath.Join(dir, "redis.sock")
	s := &server{url: "unix://" + socket}
	s.cmd = exec.Command(program, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", appendOnly, "--appendfsync", "always")
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	deadline := time.Now().Add(20 * time.Second)
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
			return s
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
			if err := at.client.Set(t.Context(), name, data, 0).Err(); err != nil {
				t.Fatal(err)
			}
		},
		Lose: func(t testing.TB, s payload.Store, key string) {
			at := p.of(s)
			if n, err := at.client.Del(t.Context(), at.cfg.Prefix+"{"+key+"}:0").Result(); n != 1 || err != nil {
				t.Fatalf("%d pieces, %v", n, err)
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

// TestExpiry shows that an object stays, and that nothing does of one that was cut off.
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
	client := p.of(s).client
	check := func(want int, expire bool) {
		t.Helper()
		names, err := client.Keys(t.Context(), "*").Result()
		if err != nil || len(names) != want {
			t.Fatalf("got %v, %v", names, err)
		}
		for _, name := range names {
			if ttl := client.TTL(t.Context(), name).Val(); expire != (ttl > 0) || ttl > time.Hour {
				t.Errorf("%s expires in %v", name, ttl)
			}
		}
	}
	check(3, true) // killed now, it would leave this
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	check(5, false)
}

// TestLongUpload shows that pieces stay as long as their upload goes on.
func TestLongUpload(t *testing.T) {
	t.Parallel()
	var p places
	const ttl = time.Minute
	s := p.open(t, redispayload.Config{URL: start(t, "yes"), Prefix: "p:", TTL: ttl})
	key := payload.NewKey(time.Now())
	o, err := s.Create(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	redispayload.Age(o, ttl/2)
	client, first := p.of(s).client, "p:{"+key+"}:0"
	if err := client.Expire(t.Context(), first, ttl/2).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if left := client.TTL(t.Context(), first).Val(); left <= ttl/2 {
		t.Errorf("the first piece expires in %v", left)
	}
}

// TestEviction shows that a server is refused that removes what has no time to live.
func TestEviction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, memory, policy string
		acl                  []string
		taken                bool
	}{
		{"all keys", "100mb", "allkeys-lru", nil, false},
		{"all keys, unbounded", "0", "allkeys-lru", nil, true},
		{"what expires", "100mb", "volatile-ttl", nil, true},
		{"nothing", "100mb", "noeviction", nil, true},
		{"it doesn't tell", "100mb", "allkeys-lru", []string{"-config"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := start(t, "yes")
			opts, err := redis.ParseURL(url)
			if err != nil {
				t.Fatal(err)
			}
			client := redis.NewClient(opts)
			defer client.Close()
			err = errors.Join(client.ConfigSet(t.Context(), "maxmemory", c.memory).Err(), client.ConfigSet(t.Context(), "maxmemory-policy", c.policy).Err())
			if c.acl != nil {
				err = errors.Join(err, client.ACLSetUser(t.Context(), "default", c.acl...).Err())
			}
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			s, err := redispayload.Open(redispayload.Config{
				URL: url, TTL: time.Hour, Relaxed: true, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			o, err := s.Create(t.Context(), payload.NewKey(time.Now()))
			if err != nil {
				t.Fatal(err)
			}
			defer o.Abort()
			if err := o.Commit(); (err == nil) != c.taken || err != nil && !strings.Contains(err.Error(), "noeviction") {
				t.Errorf("got %v", err)
			}
			if noted := strings.Contains(log.String(), "maxmemory-policy"); noted != (c.acl != nil) {
				t.Errorf("the log: %q", log.String())
			}
		})
	}
}

// TestRestartedMeanwhile shows that an upload is not acknowledged of which the server has
// lost a part: it was killed, and what it had not synced is gone.
func TestRestartedMeanwhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := launch(t, dir, "yes")
	s, err := redispayload.Open(redispayload.Config{URL: server.url, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key := payload.NewKey(time.Now())
	o, err := s.Create(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Abort()
	if _, err := o.Write(make([]byte, 3<<20)); err != nil {
		t.Fatal(err)
	}
	server.kill()
	if err := os.RemoveAll(filepath.Join(dir, "appendonlydir")); err != nil {
		t.Fatal(err)
	}
	launch(t, dir, "yes")
	_, err = o.Write(make([]byte, 2<<20))
	if err == nil {
		err = o.Commit()
	}
	if err == nil {
		t.Error("it was acknowledged")
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
