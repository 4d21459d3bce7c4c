// Package archtest checks house rules that the compiler doesn't: which packages
// may import which, where goroutines start, how long files may be. It parses
// all files itself, whatever their build tags, because a stale cached list of
// packages would pass. The rules are in rules.go.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Violation is a place that breaks a rule.
type Violation struct {
	File string // relative to the root of the tree
	Line int
	Rule string
	Text string
}

// String returns the violation as "file:line: rule: text".
func (v Violation) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", v.File, v.Line, v.Rule, v.Text)
}

// Tree is a parsed checkout.
type Tree struct {
	Module string
	files  []*file
}

// file is a parsed Go file.
type file struct {
	path      string // relative to the root, with slashes
	dir       string // of path; "" for the root
	generated bool
	lines     int
	doc       string
	syntax    *ast.File
	set       *token.FileSet
	imports   map[string]string // local name → path, without dot and blank imports
}

// Parse reads all Go files of a checkout of a module. Folders that the go
// command ignores are skipped: testdata, vendor and names that begin with a dot
// or an underscore. Nested modules are included.
func Parse(tree fs.FS, module string) (*Tree, error) {
	t := &Tree{Module: module}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && ignored(d.Name()):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		f, err := parseFile(name, source)
		if err == nil {
			t.files = append(t.files, f)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("parse the tree: %w", err)
	}
	return t, nil
}

func ignored(name string) bool {
	return name == "testdata" || name == "vendor" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func parseFile(name string, source []byte) (*file, error) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &file{
		path: name, dir: strings.TrimPrefix(path.Dir(name), "."), syntax: syntax, set: set,
		generated: ast.IsGenerated(syntax),
		doc:       syntax.Doc.Text(),
		lines:     strings.Count(string(source), "\n"),
		imports:   map[string]string{},
	}
	for _, spec := range syntax.Imports {
		target := importPath(spec)
		local := path.Base(target)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		f.imports[local] = target
	}
	return f, nil
}

func importPath(spec *ast.ImportSpec) string {
	target, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser has already rejected it
	}
	return target
}

// Check returns the violations of the rules, sorted by position.
func (t *Tree) Check(rules Rules) []Violation {
	c := &checker{rules: rules, tree: t, started: map[string]bool{}}
	for _, f := range t.files {
		c.file, c.test = f, rules.isTest(f)
		c.checkImports()
		c.checkLength()
		c.checkSyntax()
	}
	c.checkGoroutineList()
	c.checkWalls()
	slices.SortFunc(c.found, func(a, b Violation) int {
		if n := strings.Compare(a.File, b.File); n != 0 {
			return n
		}
		return a.Line - b.Line
	})
	return c.found
}

// Long returns the files that deserve a second look, as "file: n lines".
func (t *Tree) Long(rules Rules) []string {
	var long []string
	for _, f := range t.files {
		if !f.generated && f.lines > rules.LongFile {
			long = append(long, fmt.Sprintf("%s: %d lines", f.path, f.lines))
		}
	}
	return long
}

// checker collects violations; file is the current one.
type checker struct {
	rules   Rules
	tree    *Tree
	file    *file
	test    bool            // whether file is test code
	started map[string]bool // folders with a go statement
	found   []Violation
}

func (c *checker) report(pos token.Pos, rule, format string, args ...any) {
	line := 1
	if pos.IsValid() {
		line = c.file.set.Position(pos).Line
	}
	c.found = append(c.found, Violation{File: c.file.path, Line: line, Rule: rule, Text: fmt.Sprintf(format, args...)})
}

// within reports whether a folder is one of the roots or below one.
func within(dir string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return dir == root || strings.HasPrefix(dir, root+"/")
	})
}
