package client_test

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/hosttest"
)

const token = "0123456789abcdefghijklmnopqrstuv"

// TestSuite runs the suite of all servers on a client, over HTTP, of a host.
func TestSuite(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, overHTTP)
}

// TestWorkflows runs that of workflows.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	hosttest.RunWorkflows(t, overHTTP)
}

func overHTTP(t testing.TB) jobhost.Server {
	t.Helper()
	c, _ := serve(t, hosttest.Open(t))
	return c
}

// serve serves a server over HTTP until the test ends, and returns a client of it and its address.
func serve(t testing.TB, server jobhost.Server, change ...func(*api.Config)) (*client.Client, string) {
	t.Helper()
	cfg := api.Config{Server: api.Serving(server), Token: token, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	for _, c := range change {
		c(&cfg)
	}
	a, err := api.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := a.Serve(ctx, listener, api.ServeConfig{ShutdownTimeout: 5 * time.Second}); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	c := client.New(listener.Addr().String(), token)
	t.Cleanup(func() {
		stop()
		group.Wait()
		c.Close()
	})
	return c, "http://" + listener.Addr().String()
}
