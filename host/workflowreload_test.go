package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/manifest"
)

// TestWorkflowsOfAManifest follows the workflows of a manifest, one in a file of its
// own, into the configuration, and through a change of both files.
func TestWorkflowsOfAManifest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "manifest.toml")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const before = `worker.w.plugin = "w.wasm"
[workflows]
max_open = 7
max_nesting = 3
retention = { failed = "forever" }
[workflow.file]
file = "flow.json"
[[workflow.here.step]]
name = "a"
workflow = "file"
`
	write("w.wasm", "\x00asm")
	write("flow.json", `{"steps":[{"name":"x","worker":"w"}]}`)
	write("manifest.toml", before)
	m, err := manifest.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := host.FromManifest(m)
	if err != nil {
		t.Fatal(err)
	}
	w := cfg.Workflows
	if w.MaxOpen != 7 || w.MaxNesting != 3 || w.Retention.Failed != 0 || w.Retention.Completed != 24*time.Hour || len(w.Definitions) != 2 {
		t.Errorf("the workflows are %+v", w)
	}
	if err := w.Check(); err != nil {
		t.Error(err)
	}

	reread := host.Rereader(path, m)
	write("flow.json", `{"steps":[{"name":"y","worker":"w"}]}`)
	write("manifest.toml", strings.NewReplacer("max_open = 7", "max_open = 8", "forever", "3d").Replace(before))
	update, err := reread(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(update.NeedsRestart, []string{"workflows.max_open", "workflows.retention"}) {
		t.Errorf("what needs a restart: %v", update.NeedsRestart)
	}
	if len(update.Workflows) != 2 || update.Workflows[0].Name != "file" || update.Workflows[0].Steps[0].Name != "y" {
		t.Errorf("the workflows are %+v", update.Workflows)
	}
	write("flow.json", `{"steps":[{"name":"y","worker":"v"}]}`)
	if _, err = reread(t.Context()); err == nil || !strings.Contains(err.Error(), "flow.json:1:32: workflow.file.steps.y.worker") {
		t.Errorf("got %v", err)
	}
	var faults manifest.Faults
	if _, err := manifest.Load(path); !errors.As(err, &faults) || faults[0].Line != 1 || faults[0].File != filepath.Join(dir, "flow.json") {
		t.Errorf("got %+v", faults)
	}
}
