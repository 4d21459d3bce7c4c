package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/process"
)

// setup returns a worker for a folder with files.
func setup(t *testing.T, files map[string]string) *dupfiles {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	d := &dupfiles{}
	if err := d.start(t.Context(), process.Host{Config: map[string]string{"root": root}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.root.Close() })
	return d
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	d := setup(t, map[string]string{
		"a/one": "same content", "a/two": "same content", "b/three": "same content", "b/alone": "some content",
		"b/x": "xy", "b/y": "xy", "b/empty": "", "a/empty": "",
	})
	for payload, want := range map[string]report{
		`{}`: {Files: 6, Wasted: 26, Duplicate: []group{
			{Bytes: 12, Paths: []string{"a/one", "a/two", "b/three"}}, {Bytes: 2, Paths: []string{"b/x", "b/y"}},
		}},
		`{"folder": "a"}`: {Files: 2, Wasted: 12, Duplicate: []group{{Bytes: 12, Paths: []string{"one", "two"}}}},
		`{"least": 100}`:  {Duplicate: []group{}},
	} {
		got := process.Run(t.Context(), d.handle, jobhost.Attempt{Input: []byte(payload)})
		var r report
		if err := json.Unmarshal(got.Output, &r); err != nil {
			t.Fatalf("%s: %v, %v", payload, got.Err, err)
		}
		if diff := cmp.Diff(want, r, cmpopts.IgnoreFields(group{}, "SHA256")); diff != "" {
			t.Errorf("%s: %s", payload, diff)
		}
		if got.Done != got.Total {
			t.Errorf("%s: progress %d of %d", payload, got.Done, got.Total)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	d := setup(t, map[string]string{"a/file": "x"})
	if err := os.Symlink("/etc", filepath.Join(d.root.Name(), "out")); err != nil {
		t.Fatal(err)
	}
	for _, payload := range []string{``, `[]`, `{"folder": ".."}`, `{"folder": "/etc"}`, `{"folder": "out"}`, `{"folder": "nowhere"}`} {
		got := process.Run(t.Context(), d.handle, jobhost.Attempt{Input: []byte(payload)})
		if f, ok := errors.AsType[*jobhost.Failure](got.Err); !ok || !f.Permanent || f.Code != "bad_query" {
			t.Errorf("%s: %q, %v", payload, got.Output, got.Err)
		}
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	d := setup(t, map[string]string{"a": "same", "b": "same"})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(process.ErrCancelled)
	if got := process.Run(ctx, d.handle, jobhost.Attempt{Input: []byte(`{}`)}); !errors.Is(got.Err, process.ErrCancelled) {
		t.Errorf("%q, %v", got.Output, got.Err)
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	for _, config := range []map[string]string{nil, {"root": filepath.Join(t.TempDir(), "nowhere")}} {
		if err := new(dupfiles).start(t.Context(), process.Host{Config: config}); err == nil {
			t.Errorf("%v was taken", config)
		}
	}
}
