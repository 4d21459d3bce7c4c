package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/api/wire"
	"github.com/jobhost/jobhost/internal/term"
)

// broken is a server whose every answer is an error or a panic of its own.
type broken struct {
	jobhost.Server
	err error
}

func (b *broken) Job(context.Context, string) (jobhost.Job, error) {
	if b.err == nil {
		panic("SELECT * FROM secrets")
	}
	return jobhost.Job{}, b.err
}

// TestCausesStayInside checks that the cause of an error goes to the log and
// never to the client (A29).
func TestCausesStayInside(t *testing.T) {
	t.Parallel()
	cause := io.ErrUnexpectedEOF
	tests := map[string]error{
		"unknown": cause,
		"known":   &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "cannot write", Cause: cause},
		"panic":   nil,
	}
	for name, err := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log syncBuffer
			f := setup(t, options{api: func(c *api.Config) {
				c.Server = api.Serving(&broken{serverOf(c), err})
				c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			}})
			got := f.do("GET", "/v1/jobs/a", "")
			if got.status < 500 {
				t.Errorf("got status %d", got.status)
			}
			for _, secret := range []string{cause.Error(), "SELECT", ".go"} {
				if strings.Contains(got.body, secret) {
					t.Errorf("the client is told %q: %s", secret, got.body)
				}
			}
			var p wire.Problem
			if err := json.Unmarshal([]byte(got.body), &p); err != nil {
				t.Fatal(err)
			}
			id, ok := strings.CutPrefix(p.Instance, "urn:uuid:")
			if !ok || !strings.Contains(log.String(), id) {
				t.Errorf("the log doesn't have the incident %q:\n%s", p.Instance, log.String())
			}
			if name != "panic" && !strings.Contains(log.String(), cause.Error()) {
				t.Errorf("the log doesn't have the cause:\n%s", log.String())
			}
		})
	}
}

// TestOutcomeOpen: what may have been carried out isn't answered with a status at which libraries repeat a request by
// themselves; what surely was not is.
func TestOutcomeOpen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		status int
		retry  string
	}{
		{fmt.Errorf("submit: %w (in this test)", term.ErrUnknown), 502, ""},
		{fmt.Errorf("submit: %w: in this test", term.ErrOver), 503, "1"},
	} {
		f := setup(t, options{api: func(c *api.Config) { c.Server = api.Serving(&broken{serverOf(c), tt.err}) }})
		got := f.do("GET", "/v1/jobs/a", "")
		f.want(got, tt.status, `"code":"unavailable"`, `"hint":`)
		if retry := got.header.Get("Retry-After"); retry != tt.retry {
			t.Errorf("%d: got Retry-After %q", tt.status, retry)
		}
	}
}
