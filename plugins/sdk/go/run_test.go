package jobhost_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/go/joblog"
)

func TestRun(t *testing.T) {
	t.Parallel()
	handler := func(job *jobhost.Job) ([]byte, error) {
		city, ok := job.Config("city")
		_, none := job.Label("none")
		key, err := job.Secret("key")
		_, denied := job.Secret("other")
		job.Log(jobhost.LevelDebug, "not kept")
		joblog.New(job).With("a", 1).Warn("two words\n", "b", "c d")
		job.Progress(1, 0)
		err = errors.Join(err, job.Emit(job.Input()),
			job.Counter("n", "k", `v"`).Add(2), job.Counter("n", "k", `v"`).Add(1), job.Gauge("g").Set(-1))
		_, _ = fmt.Fprintln(job, job.ID(), job.Task(), job.Tasks(), job.Attempt(), job.Priority(), job.Worker(), job.Trace(),
			city, ok, none, key, denied, job.Remaining())
		return []byte("end"), err
	}
	got := jobhost.Run(handler, jobhost.Attempt{
		Input: []byte("in"), Number: 2, Tasks: 3, Task: 1, Trace: "t", Remaining: time.Second,
		Config: map[string]string{"city": "Ulm"}, Secrets: map[string]string{"key": "s3"},
	})
	want := &jobhost.Result{
		Output:   []byte("job 1 3 2 normal worker t Ulm true false s3 read secret other: not granted 1s\nend"),
		Logs:     []string{`warn two words` + "\n" + ` a=1 b="c d"`},
		Emitted:  [][]byte{[]byte("in")},
		Observed: map[string][]float64{`n{k="v\""}`: {2, 1}, "g": {-1}},
		Done:     1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRunFailure(t *testing.T) {
	t.Parallel()
	got := jobhost.Run(func(job *jobhost.Job) ([]byte, error) {
		_, _ = io.WriteString(job, "half")
		return []byte("more"), jobhost.Permanent(io.ErrUnexpectedEOF)
	}, jobhost.Attempt{})
	f, ok := errors.AsType[*jobhost.Failure](got.Err)
	if !ok || !f.Permanent || !errors.Is(got.Err, io.ErrUnexpectedEOF) || got.Output != nil {
		t.Errorf("%+v", got)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	job := func(h jobhost.Handler) error { return jobhost.Run(h, jobhost.Attempt{}).Err }
	for _, c := range []struct {
		name string
		err  error
		is   error
		text string
	}{
		{"nothing is permanent", jobhost.Permanent(nil), nil, ""},
		{"nothing to retry", jobhost.Retry(nil), nil, ""},
		{"code alone", &jobhost.Failure{Code: "no_quota"}, nil, "no_quota"},
		{"unknown errno", jobhost.Errno(-99), nil, "errno -99"},
		{"denied", job(func(job *jobhost.Job) ([]byte, error) {
			_, err := job.Secret("k")
			return nil, err
		}), jobhost.ErrDenied, "read secret k: not granted"},
		{"odd labels", job(func(job *jobhost.Job) ([]byte, error) {
			return nil, job.Counter("c", "name").Add(1)
		}), jobhost.ErrInvalid, "define metric: invalid argument"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.text == "" {
				if c.err != nil {
					t.Errorf("%v", c.err)
				}
				return
			}
			if c.err.Error() != c.text || c.is != nil && !errors.Is(c.err, c.is) {
				t.Errorf("%v", c.err)
			}
		})
	}
}

func TestRunDoesNotTouchTheInput(t *testing.T) {
	t.Parallel()
	input := []byte("abc")
	got := jobhost.Run(func(job *jobhost.Job) ([]byte, error) {
		clear(job.Input())
		return job.Input(), nil
	}, jobhost.Attempt{Input: input})
	if string(input) != "abc" || !bytes.Equal(got.Output, make([]byte, 3)) {
		t.Errorf("%q, %q", input, got.Output)
	}
}

// TestHammerRun: goroutines of a handler may share the job, natively too.
func TestHammerRun(t *testing.T) {
	t.Parallel()
	got := jobhost.Run(func(job *jobhost.Job) ([]byte, error) {
		var wg sync.WaitGroup
		logger := joblog.New(job)
		for i := range 8 {
			wg.Go(func() {
				for range 100 {
					logger.With("i", i).Info("line", slog.Group("g", "k", "v"))
					_ = job.Counter("n").Add(1)
					_ = job.Emit(nil)
					job.Progress(1, 2)
				}
			})
		}
		wg.Wait()
		return nil, nil
	}, jobhost.Attempt{})
	if len(got.Logs) != 800 || len(got.Observed["n"]) != 800 || len(got.Emitted) != 800 {
		t.Errorf("%d lines, %d values, %d messages", len(got.Logs), len(got.Observed["n"]), len(got.Emitted))
	}
	for _, line := range got.Logs {
		if !strings.HasPrefix(line, "info line i=") || !strings.HasSuffix(line, " g.k=v") {
			t.Fatal(line)
		}
	}
}

func FuzzFailText(f *testing.F) {
	f.Add("message\x7f\xff", "code\"", "key\\", "\u2028")
	f.Add(strings.Repeat("é", 5000), "", "k", strings.Repeat("\x00", 5000))
	f.Fuzz(func(t *testing.T, message, code, key, value string) {
		_, text := jobhost.FailText(&jobhost.Failure{
			Err: errors.New(message), Code: code, Context: map[string]string{key: value},
		})
		// The host reads longer ones as plain text.
		if len(text) > 64<<10 {
			t.Fatalf("%d bytes", len(text))
		}
		var got struct {
			Message string
			Context map[string]string
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if len(message) < 4<<10 && got.Message != strings.ToValidUTF8(message, "\uFFFD") && !strings.Contains(got.Message, "\uFFFD") {
			t.Errorf("%q became %q", message, got.Message)
		}
	})
}
