package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// recipe is a section of docs/changing.md.
type recipe struct {
	title   string
	count   int // of files, from the title
	example *regexp.Regexp
	files   []string
}

// TestRecipes: the files that a recipe lists are those in which its example appears,
// and they are as many as its title says.
func TestRecipes(t *testing.T) {
	t.Parallel()
	root := os.DirFS(filepath.Join("..", ".."))
	text, err := fs.ReadFile(root, "docs/changing.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes := readRecipes(t, string(text))
	if len(recipes) < 3 {
		t.Fatalf("docs/changing.md has %d recipes", len(recipes))
	}
	sources := readSources(t, root)
	for _, r := range recipes {
		if len(r.files) != r.count {
			t.Errorf("%s: %d files are listed", r.title, len(r.files))
		}
		for _, file := range r.files {
			if text, ok := sources[file]; !ok {
				t.Errorf("%s: %s is not there", r.title, file)
			} else if !r.example.MatchString(text) {
				t.Errorf("%s: the example doesn't appear in %s", r.title, file)
			}
		}
		for file, text := range sources {
			if r.example.MatchString(text) && byHand(file, text) && !slices.Contains(r.files, file) {
				t.Errorf("%s: %s is missing", r.title, file)
			}
		}
	}
}

func readRecipes(t *testing.T, text string) (list []recipe) {
	t.Helper()
	title := regexp.MustCompile(`^(.+): (\d+) files\n`)
	example := regexp.MustCompile("found by `([^`]+)`")
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
	for _, section := range strings.Split(text, "\n## ")[1:] {
		head, found := title.FindStringSubmatch(section), example.FindStringSubmatch(section)
		if head == nil || found == nil {
			t.Fatalf("a recipe lacks its number of files or its example: %.60s", section)
		}
		r := recipe{title: head[1], example: regexp.MustCompile(found[1])}
		r.count, _ = strconv.Atoi(head[2])
		for _, m := range row.FindAllStringSubmatch(section, -1) {
			r.files = append(r.files, m[1])
		}
		list = append(list, r)
	}
	return list
}

// readSources returns the text of all files that may belong to a recipe.
func readSources(t *testing.T, root fs.FS) map[string]string {
	t.Helper()
	skipped := []string{"node_modules", "testdata", "bin", "data", "bench", "test", "testing", "guesttest", "queuetest", "sdktest", "conform"}
	kinds := []string{".go", ".c", ".h", ".rs", ".zig", ".ts", ".js", ".mjs", ".py", ".proto", ".md"}
	sources := map[string]string{}
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != "." && strings.HasPrefix(d.Name(), ".") || slices.Contains(skipped, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !slices.Contains(kinds, filepath.Ext(path)) || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := fs.ReadFile(root, path)
		sources[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

// byHand reports whether people write a file, and a recipe has to name it.
func byHand(file, text string) bool {
	switch {
	case file == "CHANGELOG.md", file == "RATIONALE.md", file == "docs/changing.md", strings.HasPrefix(file, "host/queue/"):
		return false
	case strings.HasSuffix(file, ".pb.go"), strings.HasSuffix(file, "_pb2.py"):
		return false
	}
	return !strings.Contains(text, `Generated from runtime/jobabi by "make imports"`)
}
