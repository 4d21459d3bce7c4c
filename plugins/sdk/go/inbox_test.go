//go:build !wasip1

package jobhost_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	sent := []jobhost.Message{{Data: []byte("c"), After: time.Hour}, {Data: []byte("a")}, {Data: nil}}
	var got []string
	result := runAs(jobhost.Attempt{Messages: sent}, func(job *jobhost.Job) error {
		for message, err := range job.Messages() {
			if err != nil {
				return err
			}
			got = append(got, string(message))
			if err := job.Emit(message); err != nil {
				return err
			}
		}
		_, err := job.Recv()
		return err
	})
	if !slices.Equal(got, []string{"a", "", "c"}) || !errors.Is(result.Err, jobhost.ErrClosed) || len(result.Emitted) != 3 {
		t.Errorf("%q, %v", got, result.Err)
	}
}

func TestMessagesEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		at   jobhost.Attempt
		want error
		n    int
	}{
		{"of a job", jobhost.Attempt{}, jobhost.ErrDenied, 0},
		{"nothing is sent", jobhost.Attempt{Messages: []jobhost.Message{}}, nil, 0},
		{"interrupted", jobhost.Attempt{Messages: []jobhost.Message{{}}, Remaining: -1}, jobhost.ErrStopped, 0},
		{"out of time", jobhost.Attempt{Messages: []jobhost.Message{{}, {After: time.Hour}}, Remaining: time.Minute}, jobhost.ErrStopped, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := 0
			got := runAs(tt.at, func(job *jobhost.Job) error {
				for _, err := range job.Messages() {
					if err != nil {
						return err
					}
					n++
				}
				return nil
			})
			if !errors.Is(got.Err, tt.want) || n != tt.n {
				t.Errorf("%v after %d messages", got.Err, n)
			}
		})
	}
}

// TestInbox: messages, states and timers in one wait.
func TestInbox(t *testing.T) {
	t.Parallel()
	at := jobhost.Attempt{
		Messages: []jobhost.Message{{Data: []byte("m"), After: 2 * time.Second}},
		Reports:  []jobhost.Report{report(time.Second, 0, "a", 1)},
	}
	var order []int
	got := runAs(at, func(job *jobhost.Job) error {
		inbox, err := job.Inbox()
		if err != nil {
			return err
		}
		watch, err := job.WatchState()
		if err != nil {
			return err
		}
		all := []jobhost.Pending{inbox, watch, job.After(90 * time.Second)}
		for range 4 {
			i, err := job.Wait(time.Minute, all...)
			if err != nil {
				return err
			}
			order = append(order, i)
			switch i {
			case 0:
				_, err = inbox.Next()
			case 1:
				_, err = watch.Next()
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	// The sentinel, the state, the message, and that this was all.
	if !slices.Equal(order, []int{1, 1, 0, 0}) || !errors.Is(got.Err, jobhost.ErrClosed) {
		t.Errorf("%v, %v", order, got.Err)
	}
}
