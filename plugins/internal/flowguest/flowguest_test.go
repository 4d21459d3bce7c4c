package flowguest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost/plugins/internal/flowguest"
	sdk "github.com/jobhost/jobhost/plugins/sdk/go"
)

// In a fresh clone no plugin is built, and a workflow is tested without one.
func TestNewWithoutThePlugin(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "manifest.toml")
	text := "[worker.w]\nplugin = \"nowhere.wasm\"\n[workflow.f]\n[[workflow.f.step]]\nname = \"a\"\nworker = \"w\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	handled := false
	flowguest.New(t, file, &flowguest.Worker{Entries: map[string]sdk.Handler{"": func(*sdk.Job) ([]byte, error) {
		handled = true
		return []byte("{}"), nil
	}}}).Start(nil).Wait()
	if !handled {
		t.Error("the worker was not called")
	}
}
