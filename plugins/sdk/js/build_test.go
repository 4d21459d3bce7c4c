package js_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

// A worker imports what it uses of the host and nothing else, and is put back
// after each job rather than made anew.
func TestImports(t *testing.T) {
	t.Parallel()
	always := []string{
		"emit", "fail", "info", "log", "log_level", "output", "progress", "remaining",
		"wasi_snapshot_preview1.clock_time_get", "wasi_snapshot_preview1.random_get",
	}
	for file, more := range map[string][]string{
		"hello/hello.js":   nil,
		"testdata/edge.js": {"kv_add", "kv_cas", "kv_del", "kv_get", "kv_set", "kv_version"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			info := sdktest.Info(t, build(t, file))
			var got []string
			for _, i := range info.Imports {
				if call := strings.TrimPrefix(i, "jobhost1."); !slices.Contains(always, call) {
					got = append(got, call)
				}
			}
			if !slices.Equal(got, more) {
				t.Errorf("imports %q instead of %q", got, more)
			}
			if info.Isolation != "job" || info.Replaced != "" {
				t.Errorf("%+v", info)
			}
		})
	}
	t.Run("entries", func(t *testing.T) {
		t.Parallel()
		if got := sdktest.Info(t, build(t, "hello/hello.js")).Entries; !slices.Equal(got, []string{"jh_run"}) {
			t.Errorf("%q", got)
		}
	})
}

// What is wrong with a worker is told when it is built, where that can be known.
func TestBuildErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no file":      {map[string]string{}, "read w.js: there is no such file"},
		"syntax":       {map[string]string{"w.js": "export default () => 1;\nlet let = 1;"}, "w.js:2:"},
		"a taken name": {map[string]string{"w.js": "export default () => 1; export const memory = () => 1;"}, "exports memory, which is no name for an entry"},
		"no default":   {map[string]string{"w.js": "export const run = () => 1;"}, "has no default export"},
		"package":      {map[string]string{"w.js": `import _ from "lodash"; export default _;`}, "esbuild"},
		"missing file": {map[string]string{"w.js": `import "./lib/x.js"; export default () => 1;`}, "read lib/x.js: there is no such file"},
		"unknown name": {map[string]string{"w.js": `import { kw } from "jobhost"; export default () => kw.get("k");`}, `"jobhost" has no kw; it has Failure, Headers,`},
		"a circle": {map[string]string{
			"w.js": `import { b } from "./b.js"; export default () => b;`,
			"b.js": `import w from "./w.js"; export const b = 1;`,
		}, "w.js → b.js → w.js"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			toolchain.NeedModule(t, "quickjs-wasi")
			toolchain.NeedModule(t, "binaryen")
			cmd := exec.CommandContext(t.Context(), toolchain.Need(t, "node"), "build.mjs", write(t, c.files))
			cmd.Env = toolchain.Env()
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.HasPrefix(string(out), "jobhost-js: ") || !strings.Contains(string(out), c.want) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// What is wrong with it when it starts is told by the host that loads it.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ worker, want string }{
		"no function": {`export default () => 1; export const limit = 7;`, "the export limit is no function"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			module := build(t, write(t, map[string]string{"w.js": c.worker}))
			if err := sdktest.Start(t, module); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// write writes files into a folder and returns the path of w.js there.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "w.js")
}
