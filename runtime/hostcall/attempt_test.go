package hostcall_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	at := &hostcall.Attempt{Limits: hostcall.Limits{OutputBytes: 10}}
	piece := []byte("12345")
	if e := at.AppendOutput(piece); e != hostcall.OK {
		t.Errorf("errno %d", e)
	}
	piece[0] = 'x'
	result := []byte("67890")
	got := at.Outcome(result)
	result[0] = 'x'
	if got.Kind != jobhost.OutcomeSucceeded || string(got.Output) != "1234567890" {
		t.Errorf("%v %q", got.Kind, got.Output)
	}
	if got := at.Outcome([]byte("678901")); got.Kind != jobhost.OutcomeFailed || got.Failure.Code != jobhost.FailOutputTooLarge {
		t.Errorf("%+v", got)
	}
	at.Reset()
	at.Limits.OutputBytes = 10
	if got := at.Outcome(nil); got.Kind != jobhost.OutcomeSucceeded || got.Output != nil {
		t.Errorf("after a reset: %+v", got)
	}
}

// TestRefusedOutputIsNoSuccess: part of a result must not pass for the whole.
func TestRefusedOutputIsNoSuccess(t *testing.T) {
	t.Parallel()
	at := &hostcall.Attempt{Limits: hostcall.Limits{OutputBytes: 10}}
	if e := at.AppendOutput(make([]byte, 11)); e != hostcall.ErrLimit {
		t.Errorf("errno %d", e)
	}
	if e := at.AppendOutput([]byte("fits")); e != hostcall.OK {
		t.Errorf("errno %d", e)
	}
	if got := at.Outcome(nil); got.Failure == nil || got.Failure.Code != jobhost.FailOutputTooLarge || got.Failure.Category != jobhost.CategoryResource {
		t.Errorf("%+v", got)
	}
	at.Fail(hostcall.FailPermanent, []byte("my result is too large"))
	if got := at.Outcome(nil); got.Failure == nil || got.Failure.Code != jobhost.FailWorker {
		t.Errorf("%+v", got)
	}
}

func TestRemaining(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := &hostcall.Attempt{}
		if got := at.Remaining(); got != hostcall.NoDeadline {
			t.Errorf("without a deadline: %d", got)
		}
		at.Deadline = time.Now().Add(1500 * time.Microsecond)
		if got := at.Remaining(); got != 2 {
			t.Errorf("1.5 ms before the deadline: %d", got)
		}
		time.Sleep(1500 * time.Microsecond)
		if got := at.Remaining(); got != -3 {
			t.Errorf("at the deadline: %d", got)
		}
		at.Deadline = time.Time{}
		at.Cancel()
		if got := at.Remaining(); got != hostcall.Stopping {
			t.Errorf("cancelled: %d", got)
		}
	})
}

func TestCancelIsSafe(t *testing.T) {
	t.Parallel()
	at := &hostcall.Attempt{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(at.Cancel)
	}
	for at.Remaining() != hostcall.Stopping {
	}
	wg.Wait()
}

func TestStopped(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]jobhost.OutcomeKind{
		hostcall.ErrCancelled:                          jobhost.OutcomeCancelled,
		fmt.Errorf("grace: %w", hostcall.ErrCancelled): jobhost.OutcomeCancelled,
		hostcall.ErrReturned:                           jobhost.OutcomeReturned,
		context.Canceled:                               jobhost.OutcomeReturned,
		errors.New("else"):                             jobhost.OutcomeReturned,
		context.DeadlineExceeded:                       jobhost.OutcomeFailed,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if got := (&hostcall.Attempt{}).Stopped(ctx); got.Kind != want {
			t.Errorf("%v: %v", cause, got.Kind)
		}
	}
}

// reports records progress and counts metrics.
type reports struct {
	hostcall.Services
	progress []int64
	metrics  int
}

func (r *reports) Progress(_ *hostcall.Attempt, done, _ int64) { r.progress = append(r.progress, done) }

func (r *reports) Metric(*hostcall.Attempt, hostcall.MetricKind, string) (int32, hostcall.Errno) {
	r.metrics++
	return 7, hostcall.OK
}

func (r *reports) Observe(*hostcall.Attempt, int32, float64) hostcall.Errno { return hostcall.OK }

func TestProgressIsCoalesced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &reports{}
		at := &hostcall.Attempt{Services: r}
		for n := range int64(300) { // 3 s
			at.Progress(n, 300)
			time.Sleep(10 * time.Millisecond)
		}
		at.Progress(300, 300)
		at.Progress(-1, 300)
		at.Flush()
		at.Flush()
		if n := len(r.progress); n < 25 || n > 32 || r.progress[0] != 0 || r.progress[n-1] != 300 || !slices.IsSorted(r.progress) {
			t.Errorf("%d reports: %v", n, r.progress)
		}
	})
}

func TestMetricArguments(t *testing.T) {
	t.Parallel()
	r := &reports{}
	at := &hostcall.Attempt{Services: r}
	for _, kind := range []hostcall.MetricKind{-1, 0, 4} {
		if _, e := at.Metric(kind, "n"); e != hostcall.ErrInvalid {
			t.Errorf("kind %d: errno %d", kind, e)
		}
	}
	if _, e := at.Metric(hostcall.Gauge, strings.Repeat("n", hostcall.MaxMetricBytes+1)); e != hostcall.ErrInvalid {
		t.Errorf("long name: errno %d", e)
	}
	if id, e := at.Metric(hostcall.Gauge, "n"); id != 7 || e != hostcall.OK || r.metrics != 1 {
		t.Errorf("id %d, errno %d, %d calls", id, e, r.metrics)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if e := at.Observe(7, v); e != hostcall.ErrInvalid {
			t.Errorf("observe %v: errno %d", v, e)
		}
	}
	if e := at.Observe(7, -1.5); e != hostcall.OK {
		t.Errorf("errno %d", e)
	}
}

func TestNoAllocations(t *testing.T) {
	at := &hostcall.Attempt{}
	msg := []byte("some output")
	allocs := testing.AllocsPerRun(100, func() {
		at.Reset()
		at.Limits.OutputBytes = 1000
		at.AppendOutput(msg)
		at.Remaining()
		at.Progress(1, 2)
		at.Flush()
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
