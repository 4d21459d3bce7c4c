package builtin_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/builtin"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// untilStopped ends with its context.
func untilStopped(ctx context.Context, _ *hostcall.Attempt) jobhost.Outcome {
	<-ctx.Done()
	return jobhost.Outcome{}
}

func TestRun(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		run   builtin.Func
		cause error // of the end of the run's context after a second; nil = it goes on
		want  jobhost.OutcomeKind
		code  string
	}{
		{"success", func(_ context.Context, at *hostcall.Attempt) jobhost.Outcome { return at.Outcome(at.Input) }, nil, jobhost.OutcomeSucceeded, ""},
		{"failure", func(_ context.Context, at *hostcall.Attempt) jobhost.Outcome {
			return at.Failure("own", jobhost.CategoryBusiness, "no")
		}, nil, jobhost.OutcomeFailed, "own"},
		{"deadline", untilStopped, nil, jobhost.OutcomeFailed, jobhost.FailTimeout},
		{"cancel", untilStopped, hostcall.ErrCancelled, jobhost.OutcomeCancelled, ""},
		{"shutdown", untilStopped, hostcall.ErrReturned, jobhost.OutcomeReturned, ""},
		{"an outcome in spite of the end", func(ctx context.Context, at *hostcall.Attempt) jobhost.Outcome {
			<-ctx.Done()
			return at.Outcome(nil)
		}, nil, jobhost.OutcomeSucceeded, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.cause != nil {
					time.AfterFunc(time.Second, func() { cancel(tt.cause) })
				}
				p := builtin.New(tt.run, nil)
				instance, err := p.Instantiate(ctx)
				if err != nil {
					t.Fatal(err)
				}
				at := &hostcall.Attempt{Input: []byte("x"), Limits: hostcall.Limits{OutputBytes: 1}, Deadline: time.Now().Add(time.Minute)}
				result := instance.Run(ctx, at)
				if result.Outcome.Kind != tt.want || result.Replace != "" {
					t.Errorf("got %+v", result)
				}
				if f := result.Outcome.Failure; tt.code != "" && (f == nil || f.Code != tt.code) {
					t.Errorf("got the failure %+v", f)
				}
				if err := errors.Join(instance.Close(ctx), p.Close(ctx)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	want := errors.New("still busy")
	p := builtin.New(untilStopped, func() error { return want })
	if info := p.Info(); info.ABI != runtime.ABIBuiltin {
		t.Errorf("info %+v", info)
	}
	if err := p.Close(t.Context()); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}
