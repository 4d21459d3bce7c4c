package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
)

// starting is a server whose host is ready at a time.
type starting struct {
	jobhost.Server
	ready time.Time
}

func (s *starting) Ready(context.Context) error {
	if time.Now().Before(s.ready) {
		return &jobhost.Error{Code: jobhost.CodeUnavailable, Field: jobhost.FieldStart, Message: "the host is starting: 2 of 3 workers loaded"}
	}
	return nil
}

func (s *starting) Workers(ctx context.Context) ([]jobhost.WorkerStatus, error) {
	if s.Ready(ctx) != nil {
		return nil, &jobhost.Error{
			Code: jobhost.CodeUnavailable, Field: jobhost.FieldStart, Message: "the host is starting: 2 of 3 workers loaded, compiling csvstats",
		}
	}
	return nil, nil
}

func (s *starting) Submit(ctx context.Context, _ jobhost.Spec) (jobhost.Receipt, error) {
	return jobhost.Receipt{ID: "job-1"}, s.Ready(ctx)
}

func (s *starting) SubmitBatch(ctx context.Context, specs []jobhost.Spec) ([]jobhost.Submitted, error) {
	answers := make([]jobhost.Submitted, len(specs))
	for i := range answers {
		answers[i].Receipt.ID = "job-1"
	}
	return answers, s.Ready(ctx)
}

func (s *starting) StartWorkflow(ctx context.Context, _ jobhost.WorkflowStart) (jobhost.WorkflowReceipt, error) {
	return jobhost.WorkflowReceipt{ID: "wf-1"}, s.Ready(ctx)
}

// A command that makes a job waits for a host that is starting, and says what for.
func TestCommandsWaitForAStartingHost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		args  []string
		start time.Duration
		code  int
		out   string
	}{
		{"submit", []string{"submit", "csvstats", "x"}, 19 * time.Second, exitOK, "job-1\n"},
		{"lines", []string{"submit", "csvstats", "--lines"}, 19 * time.Second, exitOK, "job-1\n"},
		{"workflow", []string{"workflow", "run", "letters"}, 19 * time.Second, exitOK, "wf-1\n"},
		{"too long", []string{"submit", "csvstats", "x"}, time.Hour, exitFailed, ""},
		{"with a bound", []string{"submit", "csvstats", "x", "--wait=2s"}, time.Minute, exitFailed, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				c := newConsole(t, &starting{ready: began.Add(tt.start)})
				c.env.stdin = strings.NewReader("a line\n")
				code := c.run(t, tt.args...)
				if code != tt.code || c.out.String() != tt.out {
					t.Errorf("exit code %d, stdout %q, stderr %q", code, c.out.String(), c.errOut.String())
				}
				if !strings.HasPrefix(c.errOut.String(), "jobhost: the host is starting: 2 of 3 workers loaded, compiling csvstats; waiting for it\n") {
					t.Errorf("stderr %q", c.errOut.String())
				}
				if took := time.Since(began); took > min(tt.start, startPatience)+startPoll {
					t.Errorf("it waited %v", took)
				}
			})
		})
	}
}

// With --wait there is no end but that of the wait.
func TestWaitOutlastsALongStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &starting{ready: time.Now().Add(time.Hour)}
		c := newConsole(t, s)
		if err := c.env.awaitStart(t.Context(), s, (&waitFlag{given: true}).forStart()); err != nil || s.Ready(t.Context()) != nil {
			t.Errorf("%v, and the host is ready: %v", err, s.Ready(t.Context()) == nil)
		}
	})
}

func TestWaitForAStartIsInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		s := &starting{ready: time.Now().Add(time.Hour)}
		if err := newConsole(t, s).env.awaitStart(ctx, s, 0); err == nil {
			t.Error("it waited on")
		}
	})
}
