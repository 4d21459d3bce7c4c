package host_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/host/schedule"
	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
)

// yearly is config with the schedule that the suite asks for.
func yearly(t testing.TB) host.Config {
	t.Helper()
	timing, err := schedule.Cron("0 0 1 1 *", "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(t)
	cfg.Schedules = []schedule.Schedule{{
		Name: "yearly", Timing: timing, Job: jobhost.Spec{Worker: "test", Entry: "echo", Payload: []byte("happy new year")},
	}}
	cfg.Workflows.Definitions = hosttest.Definitions()
	cfg.Payloads, cfg.PayloadThreshold = payloads(t), 1024
	workers, schedules := cfg.Workers, cfg.Schedules
	cfg.Reread = func(context.Context) (host.Update, error) {
		return host.Update{Workers: workers, Schedules: schedules}, nil
	}
	return cfg
}

// payloads returns a set of one store in memory.
func payloads(t testing.TB) *payload.Set {
	t.Helper()
	set, err := payload.New(payload.Config{Stores: []payload.Named{{Name: "one", Store: payloadtest.NewMemory()}}, Compress: true})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestHostIsAServer(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, inProcess)
}

// The same suite, through the API and its client.
func TestHostOverHTTP(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, overHTTP)
}

func TestHostWorkflows(t *testing.T) {
	t.Parallel()
	t.Run("in process", func(t *testing.T) { hosttest.RunWorkflows(t, inProcess) })
	t.Run("over HTTP", func(t *testing.T) { hosttest.RunWorkflows(t, overHTTP) })
}

func inProcess(t testing.TB) jobhost.Server {
	t.Helper()
	h, _ := run(t, yearly(t))
	return h
}

func overHTTP(t testing.TB) jobhost.Server {
	t.Helper()
	h, _ := run(t, yearly(t))
	token := strings.Repeat("0123456789abcdef", 4)
	face, err := api.New(api.Config{Server: h, Token: token, Ready: h.Ready})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(face)
	t.Cleanup(func() {
		face.Stop()
		server.Close()
	})
	return client.New(server.URL, token)
}
