package main

import (
	"context"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

// unreachable is a server at an address where there is none.
type unreachable struct{ jobhost.Server }

func (unreachable) Workers(context.Context) ([]jobhost.WorkerStatus, error) {
	return nil, errUnreachable
}

var errUnreachable = &jobhost.Error{
	Code: jobhost.CodeUnavailable, Field: jobhost.FieldURL, Message: "cannot reach jobhost", Hint: "is jobhost running?",
}

// Why nothing was found depends on where it was looked for.
func TestHintsOfAnAddress(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		env  string
		want string
	}{
		{"default", nil, "", "there is no manifest.toml here, so this is the default address"},
		{"flag", []string{"--addr", "127.0.0.1:9"}, "", "the address is that of --addr: "},
		{"environment", nil, "127.0.0.1:9", "the address is that of JOBHOST_ADDR: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t, unreachable{})
			c.env.getenv = func(name string) string {
				if name == "JOBHOST_ADDR" {
					return tt.env
				}
				return ""
			}
			if code := c.run(t, append([]string{"worker", "ls"}, tt.args...)...); code != exitFailed || !strings.Contains(c.errOut.String(), "  hint: "+tt.want) {
				t.Errorf("exit code %d, stderr %q, want %q", code, c.errOut.String(), tt.want)
			}
		})
	}
}
