package workertest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/jobhost/jobhost/host/manifest"
)

// FuzzCase checks for any bytes that they are read as a case or give faults that are
// fit to print, and that what was read can be compared.
func FuzzCase(f *testing.F) {
	files, err := filepath.Glob("testdata/suites/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, one := range archive.Files {
			if strings.HasSuffix(one.Name, ".toml") {
				f.Add(one.Data)
			}
		}
	}
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "page.html"), []byte("page"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &Case{dir: dir}
		fit(t, c.parse("case.toml", data))
		fit(t, (&Suite{}).parse("cases.toml", data))
		if c.Expect.Fail != nil || c.Output.inline == nil {
			return
		}
		if d := c.Output.compare(c.Output.inline.bytes(), nil); len(d) > 0 {
			t.Errorf("an output is not as itself: %+v", d)
		}
	})
}

// fit sees that an error is one of faults that can be printed.
func fit(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	faults, ok := errors.AsType[manifest.Faults](err)
	if !ok || len(faults) == 0 {
		t.Fatalf("%T: %v", err, err)
	}
	for _, fault := range faults {
		text := fault.Error()
		if len(text) > 4000 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("not fit to print: %q", text)
		}
	}
}
