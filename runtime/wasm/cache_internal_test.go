package wasm

import (
	"runtime/debug"
	"testing"
)

// TestCompilerIn: code of another compiler is other code, also where go.mod puts that
// in the place of the one that it requires.
func TestCompilerIn(t *testing.T) {
	t.Parallel()
	const path = "github.com/tetratelabs/wazero"
	seen := map[string]string{}
	for name, m := range map[string]*debug.Module{
		"a release":       {Path: path, Version: "v1.12.0", Sum: "h1:a"},
		"another release": {Path: path, Version: "v1.13.0", Sum: "h1:b"},
		"a fork":          {Path: path, Version: "v1.12.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.12.0", Sum: "h1:c"}},
		"a newer fork":    {Path: path, Version: "v1.12.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.12.1", Sum: "h1:d"}},
		"a moved release": {Path: path, Version: "v1.12.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.12.1", Sum: "h1:e"}},
		"a folder":        {Path: path, Version: "v1.12.0", Replace: &debug.Module{Path: "../wazero"}},
	} {
		got := compilerIn(&debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/other", Version: "v1.0.0"}, m}})
		if other, ok := seen[got]; ok || got == "" {
			t.Errorf("%s is %q, as is %q", name, got, other)
		}
		seen[got] = name
	}
	if got := compilerIn(&debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/other"}}}); got != "" {
		t.Errorf("without it: %q", got)
	}
}
