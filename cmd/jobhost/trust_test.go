package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/host/config"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/runtime"
)

// TestTellTrust: whose plugin may change unnoticed, and meets the host alone, is
// named at the start.
func TestTellTrust(t *testing.T) {
	t.Parallel()
	worker := func(name, sha256 string, sandbox runtime.Placement) manifest.Worker {
		return manifest.Worker{Worker: config.Worker{Name: name, Sandbox: sandbox}, SHA256: sha256}
	}
	pinned := strings.Repeat("ab", 32)
	for _, tc := range []struct {
		name    string
		workers []manifest.Worker
		want    string // in the log; empty = nothing is logged
	}{
		{"none", nil, ""},
		{"all pinned or in processes", []manifest.Worker{worker("a", pinned, runtime.SandboxInline), worker("b", "", runtime.SandboxProcess)}, ""},
		{"two that are neither", []manifest.Worker{
			worker("b", "", runtime.SandboxInline), worker("c", pinned, runtime.SandboxInline), worker("a", "", runtime.SandboxInline),
		}, "worker=a,b hint="},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			tellTrust(slog.New(slog.NewTextHandler(&log, nil)), &manifest.Manifest{Workers: tc.workers})
			if got := log.String(); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("the log has %q", got)
			}
		})
	}
}
