package host_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/host/schedule"
)

// A reload that changes no worker is in the log, too: it may have changed a schedule or a workflow.
func TestReloadIsLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cfg := hosttest.Config(t)
	cfg.Logger = slog.New(slog.NewTextHandler(&out, nil))
	next := host.Update{Workers: slices.Clone(cfg.Workers), Schedules: []schedule.Schedule{everySecond(t)}}
	cfg.Reread = func(context.Context) (host.Update, error) { return next, nil }
	h, stop := run(t, cfg)
	if _, err := h.Reload(t.Context(), "test"); err != nil { // one worker, and nothing else
		t.Fatal(err)
	}
	if _, err := h.Reload(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "manifest reloaded") != 1 || !strings.Contains(got, `msg="manifest reloaded" workers=1 workflows=0 schedules=1 changed=0`) {
		t.Error(got)
	}
}
