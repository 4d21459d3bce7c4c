package wasiabi_test

import (
	"context"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// tableRow is one program of the official suite in docs/wasi.md, and the check that stands for it.
var tableRow = regexp.MustCompile("(?m)^\\| (AssemblyScript|C|Rust) \\| (\\S+) \\| `(\\S+)` \\|$")

// TestConformTable: each program of the official suite has a check, and each check a program.
func TestConformTable(t *testing.T) {
	t.Parallel()
	want := map[string]int{"AssemblyScript": 12, "C": 14, "Rust": 46}
	programs, got := map[string]bool{}, map[string]int{}
	var listed []string
	for _, row := range tableRow.FindAllStringSubmatch(content(t, "../../docs/wasi.md"), -1) {
		if programs[row[2]] {
			t.Errorf("%s stands there twice", row[2])
		}
		programs[row[2]] = true
		got[row[1]]++
		listed = append(listed, row[3])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("programs of the suite (-want +got):\n%s", diff)
	}
	engine, err := wasm.New(wasm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(context.Background()) })
	var there []string
	for _, guest := range conformGuests {
		p := loadIn(t, engine, conformModule(t, guest), surrounding{}, "")
		there = append(there, checksOf(t, runtimetest.Instance(t, p))...)
	}
	slices.Sort(listed)
	slices.Sort(there)
	if diff := cmp.Diff(there, listed); diff != "" {
		t.Errorf("docs/wasi.md (-checks +table):\n%s", diff)
	}
}
