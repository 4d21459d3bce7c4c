package jobhost_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
)

func TestRetryDelay(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, tc := range []struct {
		name   string
		change func(*jobhost.RetryPolicy)
		want   []time.Duration // before attempts 2, 3, …
	}{
		{"default", func(*jobhost.RetryPolicy) {}, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s}},
		{"exponential", func(p *jobhost.RetryPolicy) { p.Multiplier = 10 }, []time.Duration{s, 10 * s, 100 * s, 300 * s, 300 * s}},
		{"no growth", func(p *jobhost.RetryPolicy) { p.Multiplier = 1 }, []time.Duration{s, s, s}},
		{"linear", func(p *jobhost.RetryPolicy) { p.Backoff, p.Increment = jobhost.BackoffLinear, 3*s }, []time.Duration{s, 4 * s, 7 * s, 10 * s}},
		{"constant", func(p *jobhost.RetryPolicy) { p.Backoff = jobhost.BackoffConstant }, []time.Duration{s, s, s}},
		{"cap", func(p *jobhost.RetryPolicy) { p.Max = 3 * s }, []time.Duration{s, 2 * s, 3 * s, 3 * s}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := jobhost.DefaultRetry()
			tc.change(&p)
			for i, want := range tc.want {
				if got := p.Delay(i+2, 0.5); got != want {
					t.Errorf("before attempt %d: %v, want %v", i+2, got, want)
				}
			}
		})
	}
}

func TestRetryDelayDoesNotOverflow(t *testing.T) {
	t.Parallel()
	for _, backoff := range []jobhost.Backoff{jobhost.BackoffExponential, jobhost.BackoffLinear, jobhost.BackoffConstant} {
		p := jobhost.RetryPolicy{
			MaxAttempts: jobhost.MaxAttempts, Backoff: backoff, Initial: jobhost.MaxTimeout,
			Multiplier: 100, Increment: jobhost.MaxTimeout, Max: 30 * jobhost.MaxTimeout, Jitter: 1,
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1000, math.MaxInt} { // 100^998 is +Inf
			want := p.Max
			if backoff == jobhost.BackoffConstant {
				want = p.Initial
			}
			if got := p.Delay(n, 0.5); got != want {
				t.Errorf("%s, attempt %d: %v, want %v", backoff, n, got, want)
			}
			if got := p.Delay(n, math.Nextafter(1, 0)); got < want || got > 2*want {
				t.Errorf("%s, attempt %d, late: %v", backoff, n, got)
			}
		}
	}
}

// policy draws a policy that Check accepts.
func policy(t *rapid.T) jobhost.RetryPolicy {
	p := jobhost.RetryPolicy{
		MaxAttempts: rapid.IntRange(1, jobhost.MaxAttempts).Draw(t, "attempts"),
		Backoff:     rapid.SampledFrom([]jobhost.Backoff{jobhost.BackoffExponential, jobhost.BackoffLinear, jobhost.BackoffConstant}).Draw(t, "backoff"),
		Initial:     time.Duration(rapid.Int64Range(1, int64(jobhost.MaxTimeout)).Draw(t, "initial")),
		Multiplier:  rapid.Float64Range(1, 100).Draw(t, "multiplier"),
		Increment:   time.Duration(rapid.Int64Range(0, int64(jobhost.MaxTimeout)).Draw(t, "increment")),
		Jitter:      rapid.Float64Range(0, 1).Draw(t, "jitter"),
	}
	p.Max = time.Duration(rapid.Int64Range(int64(p.Initial), int64(30*jobhost.MaxTimeout)).Draw(t, "max"))
	return p
}

func TestRetryDelayProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := policy(t)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(2, jobhost.MaxAttempts).Draw(t, "n")
		exact := p.Delay(n, 0.5)
		if exact < p.Initial-1 || exact > p.Max {
			t.Fatalf("%v is not between %v and %v", exact, p.Initial, p.Max)
		}
		if next := p.Delay(n+1, 0.5); next < exact {
			t.Fatalf("%v before attempt %d, but %v before the next", exact, n, next)
		}
		random := min(rapid.Float64Range(0, 1).Draw(t, "random"), math.Nextafter(1, 0))
		got := p.Delay(n, random)
		spread := time.Duration(p.Jitter*float64(exact)) + time.Microsecond // rounding
		if got < 0 || got < exact-spread || got > exact+spread {
			t.Fatalf("%v is further than %v from %v", got, spread, exact)
		}
	})
}

func TestRetryCheckReportsEverything(t *testing.T) {
	t.Parallel()
	bad := jobhost.RetryPolicy{
		MaxAttempts: jobhost.MaxAttempts + 1, Backoff: "fibonacci", Initial: -1, Multiplier: math.NaN(),
		Increment: -1, Max: -2, Jitter: math.Inf(1),
	}
	want := []string{"max_attempts", "backoff", "initial", "max", "multiplier", "increment", "jitter"}
	if got := fields(t, bad.Check()); !slices.Equal(got, want) {
		t.Errorf("faults at %v, want %v", got, want)
	}
	good := jobhost.DefaultRetry()
	if err := good.Check(); err != nil {
		t.Errorf("the default: %v", err)
	}
}

func ExampleRetryPolicy_Delay() {
	p := jobhost.DefaultRetry()
	for n := 2; n <= 4; n++ {
		fmt.Println(p.Delay(n, 0), p.Delay(n, 0.5))
	}
	// Output:
	// 900ms 1s
	// 1.8s 2s
	// 3.6s 4s
}
