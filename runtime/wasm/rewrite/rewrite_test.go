package rewrite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// corpus are the modules that are there: of this repository, and of the Extism
// Go SDK if it was downloaded.
func corpus(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{
		"noop": guests.Noop, "echo": guests.Echo, "outcomes": guests.Outcomes, "exit": guests.Exit,
		"init": guests.Init, "init_spin": guests.InitSpin, "init_trap": guests.InitTrap,
	}
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	fixtures := filepath.Join(strings.TrimSpace(string(cache)), "github.com/extism/go-sdk@v1.7.1/wasm")
	for _, pattern := range []string{"testdata/*.wasm", "../../../plugins/examples/*/*.wasm", fixtures + "/*.wasm"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(paths) == 0 {
			t.Logf("no module matches %s", filepath.Base(filepath.Dir(pattern)))
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(path)] = b
		}
	}
	return all
}

// large modules take the compiler a second or more.
const large = 300 << 10

// TestSameAsBefore plays modules before and after the rewrite.
func TestSameAsBefore(t *testing.T) {
	t.Parallel()
	const budget = 2_000_000 // some tenths of a second
	for name, wasm := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, o := range []rewrite.Options{{}, {KeepData: true, Interval: 1}} {
				if err := validate(interpreter(), rewritten(t, wasm, o).Module); err != nil {
					t.Fatalf("with %+v: %v", o, err)
				}
			}
			if len(wasm) > large && name != "wordcount.wasm" {
				return
			}
			same(t, compiler(), wasm, rewrite.Options{}, budget)
			if len(wasm) < large {
				same(t, interpreter(), wasm, rewrite.Options{Interval: 100}, budget/10)
			}
		})
	}
}

// TestSameAsBeforeGenerated does it with modules made at random.
func TestSameAsBeforeGenerated(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wasm := generate(t)
		o := rewrite.Options{
			Interval: rapid.SampledFrom([]int{0, 1, 7}).Draw(t, "interval"),
			KeepData: rapid.Bool().Draw(t, "keep data"),
		}
		if err := validate(interpreter(), wasm); err != nil {
			t.Fatalf("the generated module is invalid: %v", err)
		}
		same(t, compiler(), wasm, o, noBudget)
		same(t, interpreter(), wasm, o, noBudget)
	})
}
