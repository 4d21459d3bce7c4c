//go:build !wasip1

package jobhost_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// effects uses all calls of keys and jobs, and fails if its input says so.
func effects(job *jobhost.Job) ([]byte, error) {
	kv := job.KV()
	old, err := kv.Get("name")
	version, versionErr := kv.Version("name")
	_, missing := kv.Get("none")
	sum, addErr := kv.Add("n", 2)
	_, noNumber := kv.Add("name", 1)
	id, submitErr := job.Submit(jobhost.Spec{Worker: "report", Payload: []byte("a\n\nb"), Labels: map[string]string{"x": ""}, Delay: time.Second})
	_, nowErr := job.SubmitNow(jobhost.Spec{Worker: "report", ID: "mine"})
	_, denied := job.Submit(jobhost.Spec{Worker: "other"})
	_, broken := job.Submit(jobhost.Spec{Worker: "a\nb"})
	if err := errors.Join(err, versionErr, addErr, submitErr, nowErr,
		kv.CompareAndSet("name", version, append(old, '!')), kv.Set("new", nil, time.Hour), kv.Delete("gone")); err != nil {
		return nil, err
	}
	for err, want := range map[error]error{
		missing: jobhost.ErrNotFound, noNumber: jobhost.ErrInvalid, denied: jobhost.ErrDenied, broken: jobhost.ErrInvalid,
		kv.CompareAndSet("name", version+1, nil): jobhost.ErrConflict, kv.Set("", nil, 0): jobhost.ErrInvalid,
	} {
		if !errors.Is(err, want) {
			return nil, errors.New("got another error")
		}
	}
	if string(job.Input()) == "fail" {
		return nil, errors.New("on purpose")
	}
	return []byte(id), map[bool]error{false: errors.New("a wrong sum")}[sum == 42]
}

// TestEffects: keys and jobs exist once the handler has succeeded.
func TestEffects(t *testing.T) {
	t.Parallel()
	before := map[string]string{"name": "ada", "n": "40", "gone": "x"}
	const now = "worker: report\nid: mine\n\n"
	for _, tt := range []struct {
		name, input string
		keys        map[string]string
		submitted   []string
		failed      bool
	}{
		{
			"success", "",
			map[string]string{"name": "ada!", "n": "42", "new": ""},
			[]string{"worker: report\ndelay: 1s\nlabel.x:  \n\na\n\nb", now},
			false,
		},
		{"failure", "fail", before, []string{now}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := jobhost.Run(effects, jobhost.Attempt{Input: []byte(tt.input), Keys: before, MaySubmit: []string{"report"}})
			if (got.Err != nil) != tt.failed || !tt.failed && string(got.Output) != "child-1" {
				t.Fatalf("%q, %v", got.Output, got.Err)
			}
			if diff := cmp.Diff(tt.keys, got.Keys); diff != "" {
				t.Errorf("keys: %s", diff)
			}
			if diff := cmp.Diff(tt.submitted, got.Submitted); diff != "" {
				t.Errorf("jobs: %s", diff)
			}
		})
	}
}
