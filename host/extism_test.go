package host_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// fixtures is where Go keeps the plugins of the tests of Extism's SDK for Go.
func fixtures(t *testing.T) string {
	t.Helper()
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(cache)), "github.com", "extism", "go-sdk@v1.7.1")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("github.com/extism/go-sdk@v1.7.1 is not in the module cache: run `make fixtures`")
	}
	return dir
}

// TestExtismManifests runs plugins by their manifests, as the SDK's tests do.
func TestExtismManifests(t *testing.T) {
	t.Parallel()
	dir := fixtures(t)
	engine, err := wasm.New(wasm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close(t.Context())
	for _, c := range []struct {
		name, manifest, entry, input string
		want                         string // output, or a part of the failure's message after its code
	}{
		{"one module", `{"wasm": [{"path": "wasm/hello.wasm"}]}`, "run_test", "", "Hello, world!"},
		{"config", `{"wasm": [{"path": "wasm/config.wasm"}], "config": {"thing": "hello"}}`, "run_test", "", `{"config": "hello"}`},
		{"linked", `{"wasm": [{"path": "wasm/lib.wasm", "name": "lib"}, {"path": "wasm/main.wasm", "name": "main"}]}`, "run_test", "benjamin", "Hello, BENJAMIN"},
		{"folder", `{"wasm": [{"path": "wasm/read_write.wasm"}], "allowed_paths": {"ro:testdata": "/mnt"}, "config": {"path": "/mnt/test.txt"}}`, "try_read", "", "hello world!"},
		{"read-only folder", `{"wasm": [{"path": "wasm/read_write.wasm"}], "allowed_paths": {"ro:testdata": "/mnt"}, "config": {"path": "/mnt/test.txt"}}`, "try_write", "hello hello!", "failed: Failed to write file"},
		{"no vars", `{"wasm": [{"path": "wasm/var.wasm"}], "memory": {"max_var_bytes": 0}}`, "run_test", "", "trap: extism:host/env.var_set: this worker has no vars"},
		{"timeout", `{"wasm": [{"path": "wasm/sleep.wasm"}], "memory": {"max_pages": 100}, "config": {"duration": "3"}, "timeout_ms": 100}`, "run_test", "", "timeout: "},
		{"no HTTP", `{"wasm": [{"path": "wasm/http.wasm"}], "allowed_hosts": ["google.*"]}`, "run_test", "", "trap: extism:host/env.http_request: HTTP request to https://jsonplaceholder.typicode.com is not allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			worker := host.Worker{Name: "extism", Path: filepath.Join(dir, "manifest.json"), Entry: c.entry}
			if err := host.SetPlugin(&worker, []byte(c.manifest)); err != nil {
				t.Fatal(err)
			}
			plugin, err := engine.Load(t.Context(), worker.Source())
			if err != nil {
				t.Fatal(err)
			}
			sandbox := runtime.NewSandbox(plugin, nil)
			defer sandbox.Close(t.Context())
			got := sandbox.Run(t.Context(), &hostcall.Attempt{
				Input: []byte(c.input), Config: worker.Config, Limits: hostcall.Limits{OutputBytes: 1000},
				Deadline: time.Now().Add(worker.Limits.OrDefaults().Timeout),
			})
			text := string(got.Output)
			if got.Kind == jobhost.OutcomeFailed {
				text = got.Failure.Code + ": " + got.Failure.Message
			}
			if !strings.HasPrefix(text, c.want) {
				t.Errorf("%q instead of %q", text, c.want)
			}
		})
	}
	worker := host.Worker{Name: "extism", Path: filepath.Join(dir, "manifest.json")}
	err = host.SetPlugin(&worker, []byte(`{"wasm": [{"path": "wasm/hello.wasm", "hash": "`+strings.Repeat("0", 64)+`"}]}`))
	if jobhost.CodeOf(err) != jobhost.CodeDenied || !strings.Contains(err.Error(), "not the one in the Extism manifest") {
		t.Errorf("another module than the manifest's: %v", err)
	}
}
