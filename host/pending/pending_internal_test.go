package pending

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// begin returns requests that are under way.
func begin(n int) (all []*reply, list []hostcall.Pending) {
	for range n {
		x := &reply{}
		all, list = append(all, x), append(list, x)
	}
	return all, list
}

func (x *reply) answer() { x.OnComplete(context.Background(), nil, &netproxy.Response{}) }

func TestWait(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		list    func() []hostcall.Pending
		timeout time.Duration
		want    int
		after   time.Duration
	}{
		{
			name: "one that comes", timeout: time.Minute, want: 2, after: time.Second,
			list: func() []hostcall.Pending {
				all, list := begin(3)
				time.AfterFunc(time.Second, all[2].answer)
				return list
			},
		},
		{
			name: "the first of many timers", timeout: time.Minute, want: 1, after: 2 * time.Second,
			list: func() []hostcall.Pending {
				return []hostcall.Pending{After(3 * time.Second), After(2 * time.Second), After(time.Hour)}
			},
		},
		{
			name: "a response before a timer", timeout: time.Minute, want: 0, after: time.Second,
			list: func() []hostcall.Pending {
				all, list := begin(1)
				time.AfterFunc(time.Second, all[0].answer)
				return append(list, After(2*time.Second))
			},
		},
		{
			name: "nothing in time", timeout: time.Second, want: -1, after: time.Second,
			list: func() []hostcall.Pending {
				_, list := begin(1)
				return append(list, After(time.Hour))
			},
		},
		{name: "a look at nothing", want: -1, list: func() []hostcall.Pending { _, list := begin(2); return list }},
		{
			name: "a look at one that is ready", want: 1,
			list: func() []hostcall.Pending {
				all, list := begin(2)
				all[1].OnError(t.Context(), nil, &netproxy.Error{Code: netproxy.CodeDenied})
				return list
			},
		},
		{name: "at the end of the time", timeout: time.Second, want: 0, after: time.Second, list: func() []hostcall.Pending {
			return []hostcall.Pending{After(time.Second)}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				list := tt.list()
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
				defer cancel()
				if got := Wait(ctx, list); got != tt.want || time.Since(began) != tt.after {
					t.Errorf("%d after %v, want %d after %v", got, time.Since(began), tt.want, tt.after)
				}
			})
		})
	}
}

// TestWaitHammer collects requests that are answered concurrently, with waits that end early.
func TestWaitHammer(t *testing.T) {
	t.Parallel()
	for range 50 {
		all, list := begin(100)
		for _, part := range [][]*reply{all[:50], all[50:]} {
			go func() {
				for _, i := range rand.Perm(len(part)) {
					part[i].answer()
				}
			}()
		}
		for len(list) > 0 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(50))*time.Microsecond)
			if rand.IntN(2) == 0 {
				ctx = t.Context()
			}
			if i := Wait(ctx, list); i >= 0 {
				if _, err := list[i].(*reply).Response(t.Context()); err != nil {
					t.Fatal(err)
				}
				list = slices.Delete(list, i, i+1)
			}
			cancel()
		}
	}
}

// TestShown: guests don't see causes, but whether anything was sent.
func TestShown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    netproxy.Error
		code   jobhost.Code
		unsent bool
	}{
		{err: netproxy.Error{Code: netproxy.CodeDenied}, code: jobhost.CodeDenied},
		{err: netproxy.Error{Code: netproxy.CodeExhausted}, code: jobhost.CodeExhausted},
		{err: netproxy.Error{Code: netproxy.CodeRateLimited}, code: jobhost.CodeExhausted, unsent: true},
		{err: netproxy.Error{Code: netproxy.CodeRateLimited, Redirects: []string{"https://a"}}, code: jobhost.CodeExhausted},
		{err: netproxy.Error{Code: netproxy.CodeTimeout}, code: jobhost.CodeUnavailable},
	} {
		err := shown(&tt.err)
		if jobhost.CodeOf(err) != tt.code || errors.Is(err, netproxy.ErrExhausted) != tt.unsent {
			t.Errorf("%s with redirects %v: %#v", tt.err.Code, tt.err.Redirects, err)
		}
	}
}

// BenchmarkCollect waits for each of many requests that are under way.
func BenchmarkCollect(b *testing.B) {
	for b.Loop() {
		all, list := begin(2500)
		for len(list) > 0 {
			go all[len(list)-1].answer()
			i := Wait(b.Context(), list)
			list = slices.Delete(list, i, i+1)
		}
	}
}

// TestWaitIsFair checks that of several that stay ready each is returned as often as the others,
// wherever they stand among those that are not.
func TestWaitIsFair(t *testing.T) {
	t.Parallel()
	const rounds = 20_000
	for _, tt := range []struct {
		name  string
		of    int
		ready []int
	}{
		{"neighbours", 64, []int{10, 11}},
		{"neighbours over the end", 10, []int{9, 0}},
		{"three in a row", 64, []int{30, 31, 32}},
		{"two in a row and one far away", 100, []int{0, 1, 60}},
		{"all", 5, []int{0, 1, 2, 3, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			all, list := begin(tt.of)
			for _, i := range tt.ready {
				all[i].answer()
			}
			times := map[int]int{}
			for range rounds {
				times[Wait(t.Context(), list)]++
			}
			fair := rounds / len(tt.ready)
			for _, i := range tt.ready {
				// Seven standard deviations and more: chance alone doesn't get there.
				if times[i] < fair*9/10 || times[i] > fair*11/10 {
					t.Errorf("%d was returned %d times, want about %d", i, times[i], fair)
				}
			}
		})
	}
}
