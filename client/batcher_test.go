package client_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hosttest"
)

// countingServer counts the batches that reach a host.
type countingServer struct {
	*hosttest.Host
	batches atomic.Int64
}

func (s *countingServer) SubmitBatch(ctx context.Context, specs []jobhost.Spec) ([]jobhost.Submitted, error) {
	s.batches.Add(1)
	return s.Host.SubmitBatch(ctx, specs)
}

func TestBatcher(t *testing.T) {
	t.Parallel()
	server := &countingServer{Host: hosttest.Open(t)}
	c, _ := serve(t, server)
	b := c.NewBatcher(100)
	const callers, each = 50, 20
	var work sync.WaitGroup
	for caller := range callers {
		work.Go(func() {
			for i := range each {
				spec := jobhost.Spec{ID: fmt.Sprintf("%d-%d", caller, i), Worker: "test", Payload: []byte("x")}
				if i == 7 {
					spec.Worker = "nobody"
				}
				receipt, err := b.Submit(t.Context(), spec)
				switch {
				case i == 7 && jobhost.CodeOf(err) != jobhost.CodeNotFound:
					t.Errorf("a job for no worker: %v", err)
				case i != 7 && (err != nil || receipt.ID != spec.ID):
					t.Errorf("job %s: %+v, %v", spec.ID, receipt, err)
				}
			}
		})
	}
	work.Wait()
	for _, id := range []string{"0-0", "49-19"} {
		if _, err := c.Job(t.Context(), id); err != nil {
			t.Errorf("job %s: %v", id, err)
		}
	}
	if n := server.batches.Load(); n > callers*each/2 {
		t.Errorf("%d jobs took %d batches", callers*each, n)
	}
	// One that comes alone is submitted at once, and gets an id.
	receipt, err := b.Submit(t.Context(), jobhost.Spec{Worker: "test"})
	if err != nil || receipt.ID == "" || receipt.Deduplicated {
		t.Errorf("%+v, %v", receipt, err)
	}
}

// Callers that give up at any moment leave the others alone.
func TestBatcherWithImpatientCallers(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, hosttest.Open(t))
	b := c.NewBatcher(3)
	var work sync.WaitGroup
	for caller := range 40 {
		work.Go(func() {
			for i := range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				if (caller+i)%3 == 0 {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(i)*100*time.Microsecond)
				}
				_, err := b.Submit(ctx, jobhost.Spec{Worker: "test"})
				if err != nil && ctx.Err() == nil {
					t.Errorf("submit: %v", err)
				}
				cancel()
			}
		})
	}
	work.Wait()
	if _, err := b.Submit(t.Context(), jobhost.Spec{Worker: "test"}); err != nil {
		t.Error(err)
	}
}

func TestBatcherWithoutAHost(t *testing.T) {
	t.Parallel()
	h := hosttest.Open(t)
	h.Stop()
	c, _ := serve(t, h)
	b := c.NewBatcher(0)
	for range 3 {
		if _, err := b.Submit(t.Context(), jobhost.Spec{Worker: "test"}); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
			t.Errorf("got %v", err)
		}
	}
}
