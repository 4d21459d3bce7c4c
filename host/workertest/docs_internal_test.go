package workertest

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocs reads every example of docs/testing-workers.md.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/testing-workers.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```toml\n# ([^\n]*)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) < 5 || len(examples) != strings.Count(string(text), "```toml") {
		t.Fatalf("%d examples", len(examples))
	}
	for i, example := range examples {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			read := (&Case{dir: t.TempDir()}).parse
			if strings.Contains(example[1], settingsFile) {
				read = (&Suite{}).parse
			}
			if err := read("example", []byte(example[2])); err != nil {
				t.Error(err)
			}
		})
	}
}
