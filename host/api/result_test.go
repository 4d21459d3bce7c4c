package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api"
)

// oneConn is a listener with one connection.
type oneConn struct {
	conn   chan net.Conn // holds it
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error   { close(l.closed); return nil }
func (l *oneConn) Addr() net.Addr { return &net.IPAddr{} }

// slowStore is a server whose job has many tasks, of which each result takes a while to
// be read, as from a payload store.
type slowStore struct {
	jobhost.Server
	tasks int
	each  time.Duration
}

func (s *slowStore) Job(_ context.Context, id string) (jobhost.Job, error) {
	job := jobhost.Job{ID: id, State: jobhost.Succeeded, TaskCount: s.tasks}
	for i := range s.tasks {
		job.Tasks = append(job.Tasks, jobhost.Task{Index: i, State: jobhost.Succeeded})
	}
	return job, nil
}

func (s *slowStore) Submit(_ context.Context, spec jobhost.Spec) (jobhost.Receipt, error) {
	return jobhost.Receipt{ID: spec.ID, State: jobhost.Succeeded}, nil
}

func (s *slowStore) Wait(ctx context.Context, id string) (jobhost.Job, error) { return s.Job(ctx, id) }

func (s *slowStore) Results(ctx context.Context, _ string, _ int) iter.Seq2[jobhost.Result, error] {
	return func(yield func(jobhost.Result, error) bool) {
		for i := range s.tasks {
			time.Sleep(s.each) // in real time: the deadlines under test are those of a socket
			if !yield(jobhost.Result{Task: i, Data: fmt.Append(nil, "result ", i)}, ctx.Err()) || ctx.Err() != nil {
				return
			}
		}
	}
}

// exchange sends a request over a connection of its own, and reads the answer.
func exchange(t *testing.T, handler http.Handler, request string) ([]byte, error) {
	t.Helper()
	server := api.NewServer(handler, api.ServeConfig{})
	here, there := net.Pipe()
	l := &oneConn{make(chan net.Conn, 1), make(chan struct{})}
	l.conn <- there
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	defer func() {
		_ = here.Close()
		_ = server.Close()
		<-ended
	}()
	go func() { _, _ = io.WriteString(here, request) }()
	answer, err := http.ReadResponse(bufio.NewReader(here), nil)
	if err != nil {
		t.Fatal(err)
	}
	return io.ReadAll(answer.Body)
}

// A list of results takes as long as it takes, as long as it goes on: longer than the
// server's time for a request.
func TestResultsOfManyTasks(t *testing.T) {
	t.Parallel()
	const job = `{"worker":"test","id":"a"}`
	for name, request := range map[string]string{
		"result": "GET /v1/jobs/a/result HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + token + "\r\n\r\n",
		"submit": "POST /v1/jobs?wait=1s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + token +
			"\r\nContent-Type: application/json\r\nContent-Length: " + fmt.Sprint(len(job)) + "\r\n\r\n" + job,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &slowStore{tasks: 10_000, each: 20 * time.Millisecond}
				a, err := api.New(api.Config{Server: api.Serving(s), Token: token})
				if err != nil {
					t.Fatal(err)
				}
				body, err := exchange(t, a, request)
				if err != nil {
					t.Fatalf("the answer of %d bytes broke off: %v", len(body), err)
				}
				text := string(body)
				if i := strings.Index(text, `"results":`); i >= 0 {
					text = strings.TrimSuffix(strings.TrimSpace(text[i+len(`"results":`):]), "}")
				}
				var list []struct {
					Task   int
					Result string
				}
				if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != s.tasks || list[9_999].Result != "result 9999" {
					t.Fatalf("%d results, %v", len(list), err)
				}
			})
		})
	}
}
