package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// TestDocsIndex: docs/README.md leads to every page of docs, and to nothing twice.
func TestDocsIndex(t *testing.T) {
	t.Parallel()
	docs := os.DirFS(filepath.Join("..", "..", "docs"))
	pages, err := fs.Glob(docs, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	index, err := fs.ReadFile(docs, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]int{}
	for _, m := range links(string(index)) {
		listed[m]++
	}
	for _, page := range pages {
		if page != "README.md" && listed[page] != 1 {
			t.Errorf("docs/README.md links to %s %d times, want once", page, listed[page])
		}
	}
}

// TestDocsLinks: a link from one file of the repository to another leads to a file or folder that is
// there, and one to a heading to a heading.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	root := os.DirFS(filepath.Join("..", ".."))
	pages := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "RATIONALE.md", "bench/RESULTS.md"}
	docs, err := fs.Glob(root, "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range append(pages, docs...) {
		text, err := fs.ReadFile(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links(string(text)) {
			if strings.Contains(link, ":") {
				continue // another site
			}
			checked++
			if fault := deadLink(root, page, link); fault != "" {
				t.Errorf("%s: (%s): %s", page, link, fault)
			}
		}
	}
	if checked < 200 {
		t.Errorf("only %d links were found", checked)
	}
}

// deadLink says what is wrong with a link from a page; "" = nothing.
func deadLink(root fs.FS, page, link string) string {
	to, heading, _ := strings.Cut(link, "#")
	target := path.Join(path.Dir(page), to)
	if to == "" {
		target = page
	}
	if _, err := fs.Stat(root, target); err != nil {
		return "there is no " + target
	}
	if heading == "" || path.Ext(target) != ".md" {
		return ""
	}
	text, err := fs.ReadFile(root, target)
	if err != nil {
		return err.Error()
	}
	if !slices.Contains(anchors(string(text)), heading) {
		return target + " has no such heading"
	}
	return ""
}

var (
	fence  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	code   = regexp.MustCompile("`[^`\n]*`")
	target = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	title  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

// links returns where the links of a page lead, those in code left out.
func links(text string) []string {
	// A link around code, [`x`](y), keeps its target.
	text = code.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
	var all []string
	for _, m := range target.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// anchors returns the names that GitHub gives to the headings of a page.
func anchors(text string) []string {
	var all []string
	seen := map[string]bool{}
	for _, m := range title.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ', r == '-':
				return '-'
			case r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		if !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	return all
}

func TestDeadLink(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{
		"docs/a.md": {Data: []byte("# A page\n## `worker.NAME`, and more\n```\n## no heading\n```\n")},
		"run.go":    {Data: []byte("package main")},
	}
	for link, want := range map[string]string{
		"a.md": "", "../run.go": "", "#a-page": "", "a.md#workername-and-more": "",
		"b.md": "there is no docs/b.md", "run.go": "there is no docs/run.go",
		"#no-heading": "docs/a.md has no such heading", "a.md#b": "docs/a.md has no such heading",
	} {
		if got := deadLink(root, "docs/a.md", link); got != want {
			t.Errorf("%s: got %q, want %q", link, got, want)
		}
	}
	if got := links("see [`x`](a.md), `[y](b.md)` and [z](c.md#d)\n```\n[no](e.md)\n```\n"); !slices.Equal(got, []string{"a.md", "c.md#d"}) {
		t.Errorf("got %v", got)
	}
}
