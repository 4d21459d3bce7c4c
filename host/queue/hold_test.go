package queue_test

import (
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
)

// A mode survives the queue, and ends when it is changed.
func TestModeSurvivesARestart(t *testing.T) {
	t.Parallel()
	for _, mode := range []jobhost.WorkerMode{jobhost.WorkerPaused, jobhost.WorkerDraining} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			store := queuetest.NewMemory()
			defer func() { _ = store.Close() }()
			open := func() *queue.Queue {
				q, err := queue.New(t.Context(), store, queue.Config{
					Workers: []queue.Worker{{Name: "w", Capacity: 10, Retry: jobhost.DefaultRetry(), Timeout: time.Minute}},
				})
				if err != nil {
					t.Fatal(err)
				}
				return q
			}
			q := open()
			if _, err := q.Submit(t.Context(), jobhost.Spec{ID: "a", Worker: "w"}); err != nil {
				t.Fatal(err)
			}
			if err := q.SetMode(t.Context(), "w", mode); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := q.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				q = open()
				why, err := q.Why(t.Context(), "a")
				if err != nil || why.State != jobhost.Held || why.Code != string(mode) || q.Mode("w") != mode {
					t.Fatalf("got %+v, %v, mode %s; want held as %s", why, err, q.Mode("w"), mode)
				}
			}
			if err := q.SetMode(t.Context(), "w", jobhost.WorkerRunning); err != nil {
				t.Fatal(err)
			}
			lease, err := q.Slot("w").Take(t.Context())
			if err != nil || lease.Job.ID != "a" {
				t.Fatalf("got %+v, %v", lease, err)
			}
			if err := q.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if q = open(); q.Mode("w") != jobhost.WorkerRunning {
				t.Errorf("the worker is %s", q.Mode("w"))
			}
			q.Stop()
		})
	}
}

// A worker that is not there can't be paused.
func TestSetModeOfNobody(t *testing.T) {
	t.Parallel()
	store := queuetest.NewMemory()
	defer func() { _ = store.Close() }()
	q, err := queue.New(t.Context(), store, queue.Config{Workers: []queue.Worker{{Name: "w", Capacity: 10}}})
	if err != nil {
		t.Fatal(err)
	}
	err = q.SetMode(t.Context(), "nobody", jobhost.WorkerPaused)
	if code := jobhost.CodeOf(err); code != jobhost.CodeNotFound {
		t.Errorf("got error %v (code %q)", err, code)
	}
	q.Stop()
	if code := jobhost.CodeOf(q.SetMode(t.Context(), "w", jobhost.WorkerPaused)); code != jobhost.CodeUnavailable {
		t.Errorf("a queue that has stopped answers %q", code)
	}
}

// TestTakes: what a submit would be answered can be asked before.
func TestTakes(t *testing.T) {
	t.Parallel()
	store := queuetest.NewMemory()
	defer func() { _ = store.Close() }()
	q, err := queue.New(t.Context(), store, queue.Config{
		Workers: []queue.Worker{{Name: "w", Capacity: 1, Retry: jobhost.DefaultRetry(), Timeout: time.Minute}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Stop()
	for _, tt := range []struct {
		name, worker string
		do           func() error
		want         jobhost.Code
	}{
		{name: "no such worker", worker: "other", want: jobhost.CodeNotFound},
		{name: "room", worker: "w"},
		{name: "room is not taken", worker: "w"},
		{
			name: "the host takes nothing", worker: "w", want: jobhost.CodeUnavailable,
			do: func() error { q.Refuse(&jobhost.Error{Code: jobhost.CodeUnavailable}); return nil },
		},
		{
			name: "draining", worker: "w", want: jobhost.CodeUnavailable,
			do: func() error { q.Refuse(nil); return q.SetMode(t.Context(), "w", jobhost.WorkerDraining) },
		},
		{
			name: "full", worker: "w", want: jobhost.CodeExhausted,
			do: func() error {
				if err := q.SetMode(t.Context(), "w", jobhost.WorkerRunning); err != nil {
					return err
				}
				_, err := q.Submit(t.Context(), jobhost.Spec{Worker: "w"})
				return err
			},
		},
	} {
		if tt.do != nil {
			if err := tt.do(); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Takes(tt.worker); jobhost.CodeOf(err) != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
