package workertest_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/workertest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/wasm"
)

var update = flag.Bool("update", false, "write the golden files anew")

// modules are the guests by the name of the archive of their cases, up to its hyphen.
var modules = map[string][]byte{
	"outcomes": guests.Outcomes, "effects": guests.Effects, "ops": guests.Ops, "states": guests.States,
	"command": guests.Command, "extism": guests.Extism, "echo": guests.Echo, "init": guests.Init,
}

// TestSuites runs the cases of each archive in testdata/suites and compares what is
// reported with its file "report". An archive with a manifest.toml is of its worker.
func TestSuites(t *testing.T) {
	t.Parallel()
	engine := newEngine(t)
	files, err := filepath.Glob("testdata/suites/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no suites: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := unpack(t, archive)
			name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".txtar"), "-")
			r := &workertest.Runner{Engine: engine, Parallel: 4}
			r.Worker, r.Free = workerOf(t, dir, modules[name])
			compareReport(t, file, archive, report(t, r, dir))
		})
	}
}

func newEngine(t *testing.T) runtime.Engine {
	t.Helper()
	engine, err := wasm.New(wasm.Config{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// unpack writes the files of an archive into a folder.
func unpack(t *testing.T, archive *txtar.Archive) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, f := range archive.Files {
		if f.Name == "report" {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// workerOf returns the worker of a manifest in the folder, or one of the module alone.
func workerOf(t *testing.T, dir string, module []byte) (w host.Worker, free bool) {
	t.Helper()
	path := filepath.Join(dir, "manifest.toml")
	if _, err := os.Stat(path); err != nil {
		return host.Worker{Name: "test", Plugin: module, Limits: runtime.DefaultLimits()}, true
	}
	if err := os.WriteFile(filepath.Join(dir, "test.wasm"), module, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.LoadForTests(path)
	if err != nil {
		t.Fatal(err)
	}
	if w, err = host.WorkerFromManifest(m, &m.Workers[0]); err != nil {
		t.Fatal(err)
	}
	return w, false
}

// report runs the cases of a folder and tells what became of them, or what is wrong
// with the folder.
func report(t *testing.T, r *workertest.Runner, dir string) string {
	t.Helper()
	var b strings.Builder
	suite, err := workertest.Open(dir)
	if err != nil {
		return strings.ReplaceAll(err.Error(), dir, "DIR") + "\n"
	}
	began := time.Now()
	err = r.Run(t.Context(), suite, suite.Cases, func(result *workertest.Result) { tell(&b, result) })
	if err != nil {
		t.Fatal(err)
	}
	if spent := time.Since(began); spent > 20*time.Second {
		t.Errorf("it took %v: the time of cases is not to be waited for", spent)
	}
	return strings.ReplaceAll(b.String(), dir, "DIR")
}

// tell writes a result.
func tell(b *strings.Builder, r *workertest.Result) {
	word := "ok"
	if !r.OK() {
		word = "failed"
	} else if r.Case.Skip != "" {
		word = "skipped"
	}
	fmt.Fprintf(b, "%s %s\n", word, r.Case.Name)
	if r.OK() {
		return
	}
	for _, d := range r.Differences {
		fmt.Fprintf(b, "  %s\n", d.What)
		if d.Diff != "" {
			fmt.Fprintf(b, "    %s\n", strings.ReplaceAll(strings.TrimSuffix(d.Diff, "\n"), "\n", "\n    "))
			continue
		}
		fmt.Fprintf(b, "    want %s\n    got  %s\n", d.Want, strings.ReplaceAll(d.Got, "\n", "\n         "))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(b, "  note: %s\n", note)
	}
	if r.Log != "" {
		fmt.Fprintf(b, "  log: %s\n", strings.TrimSuffix(r.Log, "\n"))
	}
}

// compareReport holds a report against the one of an archive, or writes it there.
func compareReport(t *testing.T, file string, archive *txtar.Archive, got string) {
	t.Helper()
	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "report" })
	if *update {
		if i < 0 {
			archive.Files = append(archive.Files, txtar.File{Name: "report"})
			i = len(archive.Files) - 1
		}
		archive.Files[i].Data = []byte(got)
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if i < 0 {
		t.Fatalf("%s has no report; go test ./host/workertest -update writes it", file)
	}
	if diff := cmp.Diff(string(archive.Files[i].Data), got); diff != "" {
		t.Error(diff)
	}
}
