//go:build !wasip1

package jobhost_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func TestDefer(t *testing.T) {
	t.Parallel()
	request := jobhost.Request{Method: "POST", URL: "http://a/200", Body: []byte("b")}
	for _, fail := range []error{nil, errors.New("on purpose")} {
		got := do(t, func(job *jobhost.Job) error {
			id, err := job.Defer(request, "later", []byte("args"))
			if id != "child-1" || err != nil {
				t.Errorf("%q, %v", id, err)
			}
			if _, err := job.Defer(request, "", make([]byte, 64<<10+1)); !errors.Is(err, jobhost.ErrLimit) {
				t.Errorf("long arguments: %v", err)
			}
			return fail
		})
		want := []jobhost.Deferred{{ID: "child-1", Request: request, Entry: "later", Args: []byte("args")}}
		if fail != nil {
			want = nil
		}
		if diff := cmp.Diff(want, got.Deferred); diff != "" || len(got.Submitted)+len(got.Requests) != 0 {
			t.Errorf("%+v: %s", got, diff)
		}
	}
}

func TestParseReply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		reply jobhost.Reply
	}{
		{"response", jobhost.Reply{ID: "r1", Args: []byte("\x00\xff"), Answer: jobhost.Answer{
			Response: &jobhost.Response{Status: 404, Header: jobhost.Header{"a": {"1", "2"}}, Body: []byte("x\n\ny")},
		}}},
		{"none", jobhost.Reply{ID: "r1", Args: []byte{}, Answer: jobhost.Answer{
			Err: &jobhost.ResponseError{Reason: jobhost.ReasonTimeout, Message: "too late"},
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := jobhost.ParseReply(tt.reply.Payload())
			if diff := cmp.Diff(&tt.reply, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("%v: %s", err, diff)
			}
		})
	}
	for _, payload := range []string{
		"", "200", "200\n\n", "200\njobhost-request: r\njobhost-args: ?\n\n", "x\njobhost-request: r\n\n", "-1\njobhost-request: r\n\n", "{}\n\n",
	} {
		_, err := jobhost.ParseReply([]byte(payload))
		if f, ok := errors.AsType[*jobhost.Failure](err); !ok || !f.Permanent || !errors.Is(err, jobhost.ErrInvalid) {
			t.Errorf("%q: %v", payload, err)
		}
	}
}

func FuzzParseReply(f *testing.F) {
	f.Add([]byte("200\njobhost-request: r\njobhost-args: YQ==\na: b\na\n\nbody"))
	f.Add([]byte("0\nerror: dns\njobhost-request: r\n\nno such name"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := jobhost.ParseReply(payload)
		if err != nil {
			return
		}
		if (r.Response == nil) == (r.Err == nil) || r.ID == "" || r.Response != nil && !bytes.HasSuffix(payload, r.Response.Body) {
			t.Errorf("%q is %+v", payload, r)
		}
	})
}
