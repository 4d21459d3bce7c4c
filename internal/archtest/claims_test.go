package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestClaimsNameTests: a claim in the docs names the test that would fail if it
// were false, so that test must exist.
func TestClaimsNameTests(t *testing.T) {
	t.Parallel()
	root := os.DirFS(filepath.Join("..", ".."))
	tests := map[string]bool{}
	claims := map[string]string{} // the file, by the test that it names
	defined := regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	named := regexp.MustCompile("`(Test[A-Z]\\w*)(?:/[^`]*)?`")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "node_modules") {
				return fs.SkipDir
			}
			return err
		}
		switch {
		case strings.HasSuffix(path, "_test.go"), strings.Contains(path, "/hosttest/"), strings.Contains(path, "/runtimetest/"):
			b, err := fs.ReadFile(root, path)
			if err != nil {
				return err
			}
			for _, m := range defined.FindAllSubmatch(b, -1) {
				tests[string(m[1])] = true
			}
		case strings.HasSuffix(path, ".md"):
			b, err := fs.ReadFile(root, path)
			if err != nil {
				return err
			}
			for _, m := range named.FindAllSubmatch(b, -1) {
				claims[string(m[1])] = path
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(claims) < 10 {
		t.Fatalf("only %d tests are named", len(claims))
	}
	for name, path := range claims {
		if !tests[name] {
			t.Errorf("%s names %s, which is not there", path, name)
		}
	}
}
