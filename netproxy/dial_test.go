package netproxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/netproxy"
)

// The addresses of a name are tried one after the other, each with a head start.
func TestSeveralAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		after []time.Duration // when each address answers; -1 = it refuses at once, 0 = at once
		used  string          // "" = none
		took  time.Duration
	}{
		{"the first", []time.Duration{0, 0}, "8.8.8.1", 0},
		{"the first, slowly", []time.Duration{200 * time.Millisecond, 0}, "8.8.8.1", 200 * time.Millisecond},
		{"the second overtakes", []time.Duration{time.Hour, 100 * time.Millisecond}, "8.8.8.2", 350 * time.Millisecond},
		{"the first wins late", []time.Duration{300 * time.Millisecond, time.Hour}, "8.8.8.1", 300 * time.Millisecond},
		{"the first refuses", []time.Duration{-1, 100 * time.Millisecond}, "8.8.8.2", 100 * time.Millisecond},
		{"all refuse", []time.Duration{-1, -1, -1}, "", 0},
		{"none answers", []time.Duration{time.Hour, time.Hour}, "", 5 * time.Second},
		{"both at once", []time.Duration{250 * time.Millisecond, 0}, "", 250 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex // protects used
				var used []string
				w := &wire{serve: answers(func(w io.Writer, _ *http.Request) bool { return reply(w, 200, "", "") })}
				cfg := netproxy.Config{Policy: allow(t, "", "http://*"), MaxRetries: new(0), Own: noAddrs}
				cfg.Resolver = names(func(context.Context, string) ([]netip.Addr, error) {
					var all []netip.Addr
					for i := range tt.after {
						all = append(all, netip.AddrFrom4([4]byte{8, 8, 8, byte(i + 1)}))
					}
					return all, nil
				})
				cfg.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
					wait := tt.after[to.Addr().As4()[3]-1]
					if wait < 0 {
						return nil, errRefused
					}
					select {
					case <-time.After(wait):
					case <-ctx.Done():
						return nil, ctx.Err()
					}
					mu.Lock()
					used = append(used, to.Addr().String())
					mu.Unlock()
					return w.dial(ctx, to)
				}
				c := newClient(t, cfg)
				began := time.Now()
				_, err := call(t, c, netproxy.RequestSpec{URL: "http://a.example/"})
				if tt.name != "both at once" && (err == nil) != (tt.used != "") {
					t.Errorf("got %v", err)
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				mu.Lock()
				if tt.used != "" && (len(used) != 1 || used[0] != tt.used) {
					t.Errorf("connected to %v, want %s", used, tt.used)
				}
				mu.Unlock()
				c.Close()
				synctest.Wait()
				w.all.Wait() // the connections of those that lost are closed
			})
		})
	}
}

// An error of the caller's context is reported as such.
func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{serve: answers(func(w io.Writer, _ *http.Request) bool {
			time.Sleep(time.Minute)
			return reply(w, 200, "", "")
		})}
		c := w.client(t, netproxy.Config{})
		why := errors.New("the job was cancelled")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(3*time.Second, func() { cancel(why) })
		began := time.Now()
		_, err := c.Call(ctx, newRequest(t, netproxy.RequestSpec{URL: "http://a.example/"}))
		wantCode(t, err, netproxy.KindRequest, netproxy.CodeCancelled)
		if took := time.Since(began); took != 3*time.Second || !errors.Is(err, why) {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
