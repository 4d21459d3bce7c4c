package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// console runs command lines against a server and keeps what they print.
type console struct {
	env         *env
	out, errOut bytes.Buffer
}

// newConsole returns a console on the given server, which is no terminal.
func newConsole(t *testing.T, server jobhost.Server) *console {
	t.Helper()
	c := &console{}
	c.env = newEnv(strings.NewReader(""), &c.out, &c.errOut)
	c.env.getenv = func(string) string { return "" }
	c.env.dir = t.TempDir()
	c.env.now = func() time.Time { return testTime.Add(time.Minute) }
	c.env.connect = func(target) (jobhost.Server, error) { return server, nil }
	return c
}

func (c *console) run(t *testing.T, args ...string) int { return c.env.run(t.Context(), args) }

func TestRunTellsOfFullDisk(t *testing.T) {
	t.Parallel()
	var errOut bytes.Buffer
	e := newEnv(strings.NewReader(""), brokenWriter{}, &errOut)
	e.connect = func(target) (jobhost.Server, error) { return newServer(t), nil }
	for _, args := range [][]string{
		{"worker", "ls"},
		{"submit", "wordcount", "x", "--wait"},
		{"job", "--help"},
	} {
		e.stdout.err = nil
		errOut.Reset()
		if code := e.run(t.Context(), args); code != exitFailed || !strings.Contains(errOut.String(), "write output: no space") {
			t.Errorf("%v: exit code %d, stderr %q", args, code, errOut.String())
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errNoSpace }

var errNoSpace = &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "no space"}

func TestSubmitInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	server := newServer(t)
	server.onWait = func(string) { interrupt() }
	c := newConsole(t, server)
	code := c.env.run(ctx, []string{"submit", "wordcount", "later", "--delay", "1h", "--wait"})
	if want := "waiting for job job-1 was interrupted; the job goes on"; code != exitFailed || !strings.Contains(c.errOut.String(), want) {
		t.Errorf("exit code %d, stderr %q, want %q", code, c.errOut.String(), want)
	}
}

func TestWatchUntilEnd(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, payload string
		end           jobhost.State
		code          int
		want          string
	}{
		{"succeeded", "fine", jobhost.Succeeded, exitOK, "job job-1 succeeded"},
		{"dead", "fail", jobhost.Dead, exitFailed, "job job-1 is dead: bad_input: the input says so"},
		{"cancelled", "fine", jobhost.Cancelled, exitFailed, "job job-1 is cancelled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t)
			if _, err := server.PauseWorker(t.Context(), "wordcount"); err != nil {
				t.Fatal(err)
			}
			server.onWait = func(id string) {
				var err error
				if test.end == jobhost.Cancelled {
					_, err = server.Cancel(t.Context(), id)
				} else {
					_, err = server.ResumeWorker(t.Context(), "wordcount")
				}
				if err != nil {
					t.Error(err)
				}
			}
			c := newConsole(t, server)
			if code := c.run(t, "submit", "wordcount", test.payload); code != exitOK {
				t.Fatal(c.errOut.String())
			}
			c.out.Reset()
			code := c.run(t, "job", "watch", "job-1")
			if code != test.code || !strings.Contains(c.errOut.String(), test.want) {
				t.Errorf("exit code %d, stderr %q, want %q", code, c.errOut.String(), test.want)
			}
			if last := "ended      " + test.end.String() + "\n"; !strings.HasSuffix(c.out.String(), last) {
				t.Errorf("stdout %q doesn't end with %q", c.out.String(), last)
			}
		})
	}
}
