package test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// Many more jobs are submitted than a small queue accepts: the surplus is
// answered with a time to retry, and every acknowledged job runs. How fast that
// is, is measured in bench/, since other tests use the machine here.
func TestOverload(t *testing.T) {
	t.Parallel()
	s, book := newSite(t), newLedger()
	s.replace("pool_size = 4", "pool_size = 1\nqueue_capacity = 4")
	host := s.start()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var (
		mu       sync.Mutex // protects the rest
		accepted []time.Duration
		refused  int
	)
	var load sync.WaitGroup
	for producer := range 64 {
		load.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id, began := fmt.Sprintf("o%d-%d", producer, i), time.Now()
				_, err := host.Submit(ctx, jobhost.Spec{ID: id, Worker: "echo", Payload: []byte(id)})
				took := time.Since(began)
				mu.Lock()
				switch e, ok := errors.AsType[*jobhost.Error](err); {
				case err == nil:
					book.ack(id)
					accepted = append(accepted, took)
				case ctx.Err() != nil:
				case !ok || e.Code != jobhost.CodeExhausted || e.RetryAfter <= 0:
					t.Errorf("a submit over the queue's capacity: %v", err)
				default:
					refused++
				}
				mu.Unlock()
			}
		})
	}
	load.Wait()
	if refused == 0 || len(accepted) == 0 {
		t.Fatalf("%d jobs were accepted and %d refused", len(accepted), refused)
	}
	slices.Sort(accepted)
	t.Logf("%d accepted, %d refused, p99 of the accepted %v", len(accepted), refused, accepted[len(accepted)*99/100])
	checkResults(t, host, book)
	if code := host.stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
}
