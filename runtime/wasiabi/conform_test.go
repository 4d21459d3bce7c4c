package wasiabi_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// conformGuests are the programs whose checks stand for those of the official test suite of WASI: see
// docs/wasi.md. Each job runs the check that its payload names.
var conformGuests = []string{"conform", "conform_as"}

// surrounding is what a check finds, by the beginning of its name.
type surrounding struct {
	prefix  string
	args    []string
	env     map[string]string
	mounted bool // the folder of a test, at /
}

var surroundings = []surrounding{
	{prefix: "bare/"},
	{
		prefix: "given/", args: []string{"one", `a "second" one`, "3"},
		env: map[string]string{"plain": "text", "quoted": `a "b" c`, "lines": "one\ntwo"},
	},
	{prefix: "", mounted: true},
}

// given is what is in the folder of a check when it begins.
var given = map[string]string{"given/text": "0123456789", "given/two/one": "", "given/two/two": ""}

// surroundingOf returns the number of the one that a check is for.
func surroundingOf(check string) int {
	return slices.IndexFunc(surroundings, func(s surrounding) bool { return strings.HasPrefix(check, s.prefix) })
}

// output is what a check leaves on standard output, and exits the code that it ends with.
var (
	output = map[string]string{"bare/as/output": "hello"}
	exits  = map[string]string{"bare/as/exit_33": "exit code 33"}
)

// TestConform runs each check as a job of a worker, one after another in the same sandbox.
func TestConform(t *testing.T) {
	t.Parallel()
	engine, err := wasm.New(wasm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(context.Background()) })
	for _, guest := range conformGuests {
		module := conformModule(t, guest)
		for n, s := range surroundings {
			dir := t.TempDir()
			i := runtimetest.Instance(t, loadIn(t, engine, module, s, dir))
			for _, check := range checksOf(t, i) {
				if surroundingOf(check) != n {
					continue
				}
				t.Run(check, func(t *testing.T) {
					empty(t, dir)
					tree(t, dir, given)
					got := i.Run(t.Context(), runtimetest.Attempt("", check)).Outcome
					switch f := got.Failure; {
					case f == nil && exits[check] != "":
						t.Errorf("it succeeded, want %s", exits[check])
					case f != nil && (f.Code != jobhost.FailExit || f.Message != exits[check]):
						t.Errorf("%s: %s", f.Code, f.Message)
					case string(got.Output) != output[check]:
						t.Errorf("output %q, want %q", got.Output, output[check])
					}
				})
			}
		}
	}
}

// loadIn loads a module with what a surrounding has, and without what tells of the job.
func loadIn(t *testing.T, engine runtime.Engine, module []byte, s surrounding, dir string) runtime.Plugin {
	t.Helper()
	src := runtime.Source{
		Worker: "conform", Bytes: module, ABI: runtime.ABIWASI, Env: s.env,
		System: runtime.System{Args: s.args, BareEnv: true},
	}
	if s.mounted {
		src.System.Mounts = []runtime.Mount{{Host: dir, Guest: "/", Write: true}}
	}
	p, err := engine.Load(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checksOf asks a guest for the names of its checks.
func checksOf(t *testing.T, i runtime.Instance) []string {
	t.Helper()
	got := i.Run(t.Context(), runtimetest.Attempt("", "list")).Outcome
	if got.Failure != nil {
		t.Fatalf("list: %s", got.Failure.Message)
	}
	return strings.Fields(string(got.Output))
}

// empty removes what is in a folder.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

func conformModule(t *testing.T, guest string) []byte {
	t.Helper()
	return []byte(content(t, "testdata", "conform", guest+".wasm"))
}

// TestConformIsWhatItsSourcesMake builds the guests again, where the compilers are those that built them.
func TestConformIsWhatItsSourcesMake(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("building guests takes seconds")
	}
	toolchain.Need(t, "clang")
	toolchain.Need(t, "asc")
	dir := t.TempDir()
	toolchain.Build(t, "testdata/conform", toolchain.Env(), "./build.sh", dir)
	if want, got := content(t, "testdata", "conform", "TOOLCHAIN"), content(t, dir, "TOOLCHAIN"); got != want {
		t.Skipf("the guests were built by %q; here is %q", want, got)
	}
	for _, guest := range conformGuests {
		if content(t, dir, guest+".wasm") != string(conformModule(t, guest)) {
			t.Errorf("%s.wasm is not what its sources make: run testdata/conform/build.sh", guest)
		}
	}
}
