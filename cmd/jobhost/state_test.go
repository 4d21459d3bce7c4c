package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

// setStates gives a server a job with so many tasks and tags; those of the last task
// are in error, those of others finished.
func setStates(t *testing.T, server *testServer, job string, tasks, tags int) {
	t.Helper()
	for task := range tasks {
		for tag := range tags {
			s := jobhost.TaskState{JobID: job, TaskID: task, Tag: fmt.Sprintf("tag-%02d", tag), Status: jobhost.StatusFinished}
			if task == tasks-1 {
				s.Status = jobhost.StatusError
			}
			if _, err := server.SetState(t.Context(), "", s, tasks); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestStateGrid wants a job with many tasks and tags to be shown from its worst side.
func TestStateGrid(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	setStates(t, server, "many", 60, 10)
	c := newConsole(t, server)
	if code := c.run(t, "state", "get", "many"); code != exitOK {
		t.Fatalf("exit code %d: %s", code, c.errOut.String())
	}
	_, grid, _ := strings.Cut(c.out.String(), "\n\n")
	lines := strings.Split(strings.TrimSpace(grid), "\n")
	if len(lines) != 1+mostTasks+2 || !strings.HasPrefix(lines[1], "59    error ") || !strings.HasPrefix(lines[2], "0     finished ") {
		t.Errorf("got\n%s", grid)
	}
	if want := "and 10 further tasks; -o json shows all\nand 2 further tags; -o json shows all\n"; !strings.HasSuffix(grid, want) {
		t.Errorf("got\n%s\nwant it to end with\n%s", grid, want)
	}
}

// stopper ends a context when somebody writes to it.
type stopper struct{ stop context.CancelFunc }

func (s stopper) Write(p []byte) (int, error) {
	s.stop()
	return len(p), nil
}

func TestStateWatchIsInterrupted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, until string
		code        int
		text        string
	}{
		{"seen enough", "", exitOK, ""},
		{"not there yet", "finished", exitFailed, "watch job j: interrupted before 1 task had got to finished"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t)
			setStates(t, server, "j", 2, 1)
			c := newConsole(t, server)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			c.env.stdout = &stream{w: stopper{stop}}
			args := []string{"state", "watch", "j", "--tag", "tag-00"}
			if test.until != "" {
				args = append(args, "--until", test.until)
			}
			if code := c.env.run(ctx, args); code != test.code || !strings.Contains(c.errOut.String(), test.text) {
				t.Errorf("exit code %d: %s", code, c.errOut.String())
			}
		})
	}
}
