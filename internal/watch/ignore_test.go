package watch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestExcluded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line, path   string
		folder, want bool
	}{
		{"*.c", "/p/deep/a.c", false, true},
		{"*.c", "/p/a.cc", false, false},
		{"/a.c", "/p/a.c", false, true},
		{"/a.c", "/p/deep/a.c", false, false},
		{"deep/*.c", "/p/deep/a.c", false, true},
		{"deep/*.c", "/p/deep/er/a.c", false, false},
		{"**/er/*.c", "/p/deep/er/a.c", false, true},
		{"deep/**", "/p/deep/er/a.c", false, true},
		{"made/", "/p/made", true, true},
		{"made/", "/p/made", false, false},
		{"[ab].?", "/p/b.c", false, true},
		{"[!ab].?", "/p/b.c", false, false},
		{"*.c", "/elsewhere/a.c", false, false},
		{"a.c  ", "/p/a.c", false, true},
		{"# a.c", "/p/# a.c", false, false},
		{`\#a`, "/p/#a", false, true},
		{"a+b", "/p/aab", false, false},
		{"", "/p/a", false, false},
		{"/", "/p/a", true, false},
	} {
		var rules []rule
		if r, ok := parseRule("/p", tt.line); ok {
			rules = append(rules, r)
		}
		if got := excluded(rules, tt.path, tt.folder); got != tt.want {
			t.Errorf("%q excludes %s: %v, want %v", tt.line, tt.path, got, tt.want)
		}
	}
}

// A repository has most of its patterns at its root.
func TestRulesAboveTheTree(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	tree := filepath.Join(root, "repo", "workers", "greeter")
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(".gitignore", "*.go\n") // of no repository, or another one
	write("repo/.gitignore", "*.gen\n/made\n/workers/*/out\n")
	write("repo/workers/.gitignore", "!keep.gen\n")
	for _, name := range []string{"a.go", "a.gen", "keep.gen", "made", "out"} {
		write("repo/workers/greeter/"+name, "")
	}
	want := func(names ...string) {
		t.Helper()
		files := map[string]fs.FileInfo{}
		if err := (&Watcher{}).listTree(tree, files, map[string]bool{}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for path := range files {
			got = append(got, filepath.Base(path))
		}
		if slices.Sort(got); !slices.Equal(got, names) {
			t.Errorf("got %q, want %q", got, names)
		}
	}
	want("a.gen", "a.go", "keep.gen", "made", "out")
	write("repo/.git", "gitdir: elsewhere\n")
	want("a.go", "keep.gen", "made")
}

// The last matching rule decides, and files below add to those above.
func TestLastRuleDecides(t *testing.T) {
	t.Parallel()
	var rules []rule
	for _, line := range []string{"*.c", "!keep.c", "/deep/keep.c"} {
		r, ok := parseRule("/p", line)
		if !ok {
			t.Fatal(line)
		}
		rules = append(rules, r)
	}
	for path, want := range map[string]bool{"/p/a.c": true, "/p/keep.c": false, "/p/deep/keep.c": true} {
		if got := excluded(rules, path, false); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
