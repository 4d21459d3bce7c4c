package goguest

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestExamplesAreThoseOfMake keeps the list in step with the Makefile's.
func TestExamplesAreThoseOfMake(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Mode{}
	for _, line := range regexp.MustCompile(`(?m)^(DEMOS|GO_GUESTS|GO_COMMANDS) +:= (.*)$`).FindAllStringSubmatch(string(makefile), -1) {
		for name := range strings.FieldsSeq(strings.ReplaceAll(line[2], "$(DEMOS)", "")) {
			want[name] = Worker
			if line[1] == "GO_COMMANDS" {
				want[name] = Command
			}
		}
	}
	if !maps.Equal(examples, want) {
		t.Errorf("%v, but the Makefile has %v", slices.Sorted(maps.Keys(examples)), slices.Sorted(maps.Keys(want)))
	}
}

// TestExamples: nothing has to be built beforehand.
func TestExamples(t *testing.T) {
	t.Parallel()
	all, err := Examples()
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Collect(maps.Keys(examples))
	if testing.Short() {
		names = nil
	}
	for _, name := range append(names, "vowels", "crc32", "mdtable") {
		if !strings.HasPrefix(string(all[name]), "\x00asm") {
			t.Errorf("%s has %d bytes, which are no module", name, len(all[name]))
		}
	}
}
