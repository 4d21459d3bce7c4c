package breaker

import (
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

var policy = jobhost.BreakerPolicy{Key: "k", Failures: 3, Timeout: time.Minute, Probes: 2, WhenOpen: jobhost.HoldWhenOpen}

func pass(t *testing.T, b *Breaker, now time.Time) Passage {
	t.Helper()
	p, ok := b.Pass(now)
	if !ok {
		t.Fatalf("nothing passes: %+v", b.Status(now))
	}
	return p
}

func TestLife(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	b := New(policy)
	late := pass(t, b, now)
	for _, v := range []Verdict{WentWrong, WentWrong, WentWell, WentWrong, None, WentWrong} {
		pass(t, b, now).End(v, now)
	}
	if got := b.Status(now); got.State != jobhost.BreakerClosed || got.Failures != 2 || !b.Counts() {
		t.Errorf("got %+v, want closed after 2 failures in a row", got)
	}
	if !pass(t, b, now).End(WentWrong, now) {
		t.Error("the third failure did not change it")
	}
	if _, ok := b.Pass(now); ok {
		t.Error("an open breaker lets one pass")
	}
	if late.End(WentWell, now) {
		t.Error("the verdict of an earlier term counts")
	}
	now = now.Add(time.Minute)
	one, two := pass(t, b, now), pass(t, b, now)
	if _, ok := b.Pass(now); ok {
		t.Error("more probes than the policy has")
	}
	one.End(WentWell, now)
	two.End(None, now)
	pass(t, b, now).End(WentWell, now)
	if state, _ := b.Stand(); state != jobhost.BreakerClosed {
		t.Errorf("it is %s after its probes succeeded", state)
	}
	b = Restore(policy, now.Add(time.Second))
	if held, until := b.Holds(now); !held || !until.Equal(now.Add(time.Second)) {
		t.Errorf("restored, it holds %t until %v", held, until)
	}
	failing := policy
	failing.WhenOpen = jobhost.FailWhenOpen
	b.SetPolicy(failing)
	if p := pass(t, b, now); !p.Refused || p.Judges() || p.End(WentWell, now) {
		t.Errorf("got %+v, want one that is refused", p)
	}
	b.Reset()
	if p := pass(t, b, now); p.Refused || !p.Judges() {
		t.Errorf("got %+v after a reset", p)
	}
}

func TestHammer(t *testing.T) {
	t.Parallel()
	b := New(policy)
	start := time.Unix(1000, 0)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 2000 {
				now := start.Add(time.Duration(i) * time.Second)
				if p, ok := b.Pass(now); ok {
					p.End(Verdict((i+g)%3), now)
				}
				b.Holds(now)
				b.Status(now)
			}
		})
	}
	all.Wait()
	b.Reset()
	for range 2 {
		if p, ok := b.Pass(start); !ok || p.End(WentWell, start) {
			t.Fatalf("after the storm it is %+v", b.Status(start))
		}
	}
	if b.probes != 0 {
		t.Errorf("%d probes are left", b.probes)
	}
}
