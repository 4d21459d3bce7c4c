package archtest

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestWalls: forbidden dependencies are found even if they are indirect, and
// reported where they are imported.
func TestWalls(t *testing.T) {
	t.Parallel()
	const wazero = "github.com/tetratelabs/wazero"
	for _, tc := range []struct {
		name  string
		files string // "file imports", one per line; a path with a dot is another module's
		place string
		want  string // part of the text; empty = allowed
	}{
		{"an ABI at once", "runtime/x.go runtime/extismabi", "runtime/x.go:2", "runtime may not reach runtime/extismabi"},
		{"an ABI behind a package", "runtime/x.go runtime/a\nruntime/a/a.go runtime/jobabi", "runtime/a/a.go:2", "runtime → runtime/a may not reach runtime/jobabi"},
		{"its tests", "runtime/x_test.go runtime/wasiabi", "", ""},
		{"an ABI by another", "runtime/wasiabi/x.go runtime/jobabi", "", ""},
		{"an engine in the host", "host/x.go " + wazero, "host/x.go:2", "host may not reach " + wazero},
		{"an engine behind the runtime", "host/pool/x.go runtime\nruntime/x.go " + wazero + "/api", "runtime/x.go:2", "host/pool → runtime may not reach " + wazero + "/api"},
		{"an engine behind the root", "host/pool/x.go \nx.go " + wazero, "x.go:2", "host/pool → the root package may not reach " + wazero},
		{"a suite of the host", "host/hosttest/x.go " + wazero, "", ""},
		{"the engine", "runtime/wasm/x.go " + wazero, "", ""},
		{"another module of the name", "host/x.go " + wazero + "2", "", ""},
		{"tests in the product", "cmd/jobhost/x.go internal/testing/guests", "cmd/jobhost/x.go:2", "cmd/jobhost may not reach internal/testing/guests"},
		{"a suite in the product", "host/x.go host/hosttest\nhost/hosttest/x.go internal/testing/guests", "host/hosttest/x.go:2", "host → host/hosttest may not reach internal/testing/guests"},
		{"tests in benchmarks", "bench/x.go internal/testing/guests", "", ""},
		{"packages in a circle", "host/a/x.go host/b\nhost/b/x.go host/a", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{}
			for line := range strings.Lines(tc.files) {
				name, target, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				if !strings.Contains(target, ".") {
					target = strings.TrimSuffix(module+"/"+target, "/")
				}
				files[name] = &fstest.MapFile{Data: []byte("package p\nimport _ \"" + target + "\"\n")}
			}
			tree, err := Parse(files, module)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, v := range tree.Check(House()) {
				if v.Rule == "walls" {
					got += v.String()
				}
			}
			if want := tc.place + ": walls: " + tc.want; tc.want == "" && got != "" || !strings.HasPrefix(got, want) && tc.want != "" {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
