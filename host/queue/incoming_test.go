package queue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
)

// lateStore commits nothing, and says so when ctx has ended.
type lateStore struct {
	record.Store
	ctx context.Context
}

func (s *lateStore) Commit(_ []record.Op, done func([]record.OpResult, error)) {
	go func() {
		<-s.ctx.Done()
		done(nil, errFull)
	}()
}

// TestIncomingGivenUp: jobs of the inbox whose caller has left while they were committed race with nothing when their
// fate is known. The race detector is the judge, so the commit and the caller end with the same signal.
func TestIncomingGivenUp(t *testing.T) {
	t.Parallel()
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		store := &lateStore{queuetest.NewMemory(), ctx}
		t.Cleanup(func() { _ = store.Close() })
		f := reopenAny(t, store)
		returned := make(chan error)
		go func() {
			_, err := f.SubmitIncoming(ctx, []queue.Incoming{{Number: 1, Spec: jobhost.Spec{Worker: "w"}}}, func(queue.Incoming, error) {})
			returned <- err
		}()
		cancel()
		if err := <-returned; !errors.Is(err, context.Canceled) && jobhost.CodeOf(err) != jobhost.CodeUnavailable {
			t.Fatalf("got %v, want the end of the context or why the jobs were not committed", err)
		}
	}
}
