package api

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBackoff()
		const source = "192.0.2.1:1234"
		for i := range freeFailures {
			if blocked, tell := b.failed(source); blocked != 0 || tell != (i == 0) {
				t.Fatalf("failure %d: got %v, %v", i, blocked, tell)
			}
		}
		for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, maxBlock, maxBlock} {
			if blocked, tell := b.failed(source); blocked != want || !tell {
				t.Errorf("got %v, %v; want %v", blocked, tell, want)
			}
			time.Sleep(want / 2)
			if blocked, tell := b.failed("192.0.2.1:999"); blocked != want-want/2 || tell {
				t.Errorf("meanwhile: got %v, %v; want what is left of %v", blocked, tell, want)
			}
			time.Sleep(want - want/2)
		}
		if blocked, _ := b.failed("192.0.2.2:1"); blocked != 0 {
			t.Error("another source is blocked too")
		}
		time.Sleep(forgetAfter + maxBlock)
		if blocked, tell := b.failed(source); blocked != 0 || !tell {
			t.Errorf("after a long time: got %v, %v", blocked, tell)
		}
	})
}

func TestBackoffIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBackoff()
		for i := range 3 * maxSources {
			b.failed(fmt.Sprintf("10.%d.%d.1:1", i/256, i%256))
			time.Sleep(time.Millisecond)
		}
		if len(b.sources) != maxSources {
			t.Errorf("%d sources are remembered, want %d", len(b.sources), maxSources)
		}
		if b.sources[sourceOf("10.0.0.1:1")] != nil {
			t.Error("the oldest one is still remembered")
		}
	})
}

func TestSourceOf(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.1:1": "192.0.2.1/32", "[::ffff:192.0.2.1]:1": "192.0.2.1/32",
		"[2001:db8::1:2:3:4]:1": "2001:db8::/64", "[fe80::1%eth0]:1": "fe80::/64", "@": "invalid Prefix",
	} {
		if got := sourceOf(remote).String(); got != want {
			t.Errorf("%s: got %s, want %s", remote, got, want)
		}
	}
}
