package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

func TestRun(t *testing.T) {
	t.Parallel()
	handler := func(ctx context.Context, job *Job) ([]byte, error) {
		all, err := io.ReadAll(job.Open())
		if err != nil || ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		city, _ := job.Config("city")
		sum, err := job.KV().Add("n", 1)
		job.Log(jobhost.LevelInfo, fmt.Sprint(job.InputSize(), " bytes"))
		return fmt.Appendf(nil, "%s %s %s %d", job.Input(), all, city, sum), err
	}
	got := Run(t.Context(), handler, jobhost.Attempt{
		Input: []byte("hello"), Config: map[string]string{"city": "Ulm"}, Keys: map[string]string{"n": "41"},
	})
	if string(got.Output) != "hello hello Ulm 42" || got.Err != nil || got.Keys["n"] != "42" {
		t.Errorf("%q, %v, %v", got.Output, got.Err, got.Keys)
	}
	if diff := cmp.Diff([]string{"info 5 bytes"}, got.Logs); diff != "" {
		t.Error(diff)
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	quota := &jobhost.Failure{Err: errors.New("none left"), Code: "quota", Category: jobhost.Resource, Context: map[string]string{"account": "7"}}
	for _, tc := range []struct {
		name string
		err  error
		want *protocol.Result
	}{
		{"plain", errors.New("boom"), failed(&protocol.Failure{Message: "boom"})},
		{"permanent", jobhost.Permanent(errors.New("boom")), failed(&protocol.Failure{Message: "boom", Permanent: true})},
		{"details, wrapped", fmt.Errorf("buy: %w", quota), failed(&protocol.Failure{
			Message: "buy: none left", Code: "quota", Category: "resource", Context: `{"account":"7"}`,
		})},
		{"no response", &jobhost.ResponseError{Reason: jobhost.ReasonDenied, Message: "no"}, failed(&protocol.Failure{
			Message: "no", Code: "denied", Category: "validation", Permanent: true,
		})},
		{"snooze", fmt.Errorf("wait: %w", jobhost.Snooze(1500*time.Microsecond)), &protocol.Result{Outcome: &protocol.Result_SnoozeMs{SnoozeMs: 2}}},
		{"snooze for nothing", jobhost.Snooze(0), &protocol.Result{Outcome: &protocol.Result_SnoozeMs{SnoozeMs: 1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, failure(tc.err), protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func failed(f *protocol.Failure) *protocol.Result {
	return &protocol.Result{Outcome: &protocol.Result_Failure{Failure: f}}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	_, err := call(t.Context(), func(context.Context, *Job) ([]byte, error) { panic(io.ErrUnexpectedEOF) }, nil)
	f := failure(err).GetFailure()
	if f.GetCode() != "panic" || f.GetCategory() != "system" || f.GetMessage() != "panic: unexpected EOF" || f.GetPermanent() || !strings.Contains(f.GetStack(), "TestPanic") {
		t.Errorf("%v", f)
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	named := func(name string) Handler {
		return func(context.Context, *Job) ([]byte, error) { return []byte(name), nil }
	}
	started := Host{}
	p := &program{worker: Worker{
		Handler: named("main"), Entries: map[string]Handler{"b": named("b"), "a": named("a")},
		Start: func(_ context.Context, h Host) error { started = h; return nil },
	}}
	d, err := p.Describe(t.Context(), &protocol.DescribeRequest{Worker: "w", Slots: 3, Config: map[string]string{"k": "v"}, Host: "1.2"})
	if diff := cmp.Diff([]string{"default", "a", "b"}, d.GetEntries()); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if diff := cmp.Diff(Host{Worker: "w", Slots: 3, Config: map[string]string{"k": "v"}, Version: "1.2"}, started); diff != "" {
		t.Error(diff)
	}
	for entry, want := range map[string]string{"": "main", "default": "main", "a": "a", "b": "b"} {
		if out, err := p.handlers[entry](t.Context(), nil); string(out) != want || err != nil {
			t.Errorf("entry %q is %s", entry, out)
		}
	}
	if p.handlers["c"] != nil {
		t.Error("there is an entry c")
	}
	p.worker.Start = func(context.Context, Host) error { return errors.New("no model") }
	if _, err := p.Describe(t.Context(), &protocol.DescribeRequest{Worker: "w"}); err == nil || err.Error() != "start worker w: no model" {
		t.Error(err)
	}
}

func TestNoDefault(t *testing.T) {
	t.Parallel()
	p := &program{worker: Worker{Entries: map[string]Handler{
		"b": func(context.Context, *Job) ([]byte, error) { return []byte("b"), nil },
		"c": nil,
	}}}
	d, err := p.Describe(t.Context(), &protocol.DescribeRequest{})
	if diff := cmp.Diff([]string{"b", "c"}, d.GetEntries()); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if out, _ := p.handlers[""](t.Context(), nil); string(out) != "b" {
		t.Errorf("the default is %s", out)
	}
	if _, err := (&program{}).Describe(t.Context(), &protocol.DescribeRequest{}); err == nil {
		t.Error("a worker without handlers was taken")
	}
}
