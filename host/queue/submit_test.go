package queue_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
)

func TestSameIDIsOneJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.submit(jobhost.Spec{ID: "a", Payload: []byte("1")})
		again, err := f.Submit(t.Context(), jobhost.Spec{ID: "a", Worker: "w", Payload: []byte("1")})
		if err != nil || !again.Deduplicated {
			t.Fatalf("again: %+v, %v", again, err)
		}
		_, err = f.Submit(t.Context(), jobhost.Spec{ID: "a", Worker: "w", Payload: []byte("2")})
		wantCode(t, err, jobhost.CodeConflict)
		if n := counts(f); n[jobhost.Ready] != 1 {
			t.Fatalf("%d tasks are ready", n[jobhost.Ready])
		}
	})
}

func TestHundredSubmitsOfOneID(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	fresh := 0
	for range 100 {
		wg.Go(func() {
			receipt, err := f.Submit(t.Context(), jobhost.Spec{ID: "same", Worker: "w"})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if !receipt.Deduplicated {
				fresh++
			}
		})
	}
	wg.Wait()
	if n := counts(f); fresh != 1 || n.Total() != 1 {
		t.Fatalf("%d submits made the job, %d tasks wait", fresh, n.Total())
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	f := setup(t, func(c *queue.Config) {
		c.Workers[0].Capacity = 3
		c.MaxPayload = 10
	})
	tests := []struct {
		name string
		spec jobhost.Spec
		code jobhost.Code
	}{
		{"no worker", jobhost.Spec{}, jobhost.CodeInvalid},
		{"unknown worker", jobhost.Spec{Worker: "x"}, jobhost.CodeNotFound},
		{"bad id", jobhost.Spec{Worker: "w", ID: "../x"}, jobhost.CodeInvalid},
		{"payload", jobhost.Spec{Worker: "w", Payload: make([]byte, 11)}, jobhost.CodeTooLarge},
		{"too many tasks", jobhost.Spec{Worker: "w", Tasks: jobhost.MaxTasks + 1}, jobhost.CodeInvalid},
		{"more tasks than fit", jobhost.Spec{Worker: "w", Tasks: 4}, jobhost.CodeInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := f.Submit(t.Context(), tt.spec)
			wantCode(t, err, tt.code)
		})
	}
	if n := counts(f); n.Total() != 0 {
		t.Fatalf("refused submits left %d tasks", n.Total())
	}
}

func TestFullQueueFreesWithEachTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(c *queue.Config) { c.Workers[0].Capacity = 2 })
		f.submit(jobhost.Spec{})
		f.submit(jobhost.Spec{})
		_, err := f.Submit(t.Context(), jobhost.Spec{Worker: "w"})
		wantCode(t, err, jobhost.CodeExhausted)
		f.take(f.Slot("w"))
		f.submit(jobhost.Spec{})
	})
}

func TestBatchAnswersEachItem(t *testing.T) {
	t.Parallel()
	f := setup(t)
	answers, err := f.SubmitBatch(t.Context(), []jobhost.Spec{
		{Worker: "w", ID: "a"}, {Worker: "nobody"}, {Worker: "w", ID: "a"}, {Worker: "w", ID: "a", Payload: []byte("x")}, {Worker: "w"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range answers {
		got = append(got, fmt.Sprintf("%s/%t", jobhost.CodeOf(a.Err), a.Receipt.Deduplicated))
	}
	if want := []string{"/false", "not_found/false", "/true", "conflict/false", "/false"}; !slices.Equal(got, want) {
		t.Fatalf("answers %q, want %q", got, want)
	}
}
