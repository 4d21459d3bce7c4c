package main

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime"
)

// tellTrust names the workers between whose plugins and the host there is one
// wall, and whose plugins may change without anyone noticing.
func tellTrust(logger *slog.Logger, m *manifest.Manifest) {
	names := unpinned(m)
	if len(names) == 0 {
		return
	}
	logger.Info("plugins that are not pinned run in the process of the host: its sandbox is all that confines them",
		logkey.Worker, strings.Join(names, ","),
		logkey.Hint, `for code that you don't trust set host.trust = "none", or sandbox = "process" and sha256 for a worker: docs/sandbox.md`)
}

// unpinned are the workers whose plugin is not pinned by its digest and runs in
// the process of the host, sorted.
func unpinned(m *manifest.Manifest) []string {
	var names []string
	for i := range m.Workers {
		if w := &m.Workers[i]; w.SHA256 == "" && w.Sandbox == runtime.SandboxInline {
			names = append(names, w.Name)
		}
	}
	slices.Sort(names)
	return names
}
