package archtest

import (
	"go/ast"
	"go/token"
	"strings"
)

// checkImports checks the imports of the module's own packages against the arrows.
func (c *checker) checkImports() {
	for _, spec := range c.file.syntax.Imports {
		target, ours := c.tree.relative(importPath(spec))
		if !ours {
			continue
		}
		if driver := c.rules.driver(target); driver != "" {
			c.checkDriver(spec.Pos(), driver)
			continue
		}
		layer, ok := c.rules.layer(c.file.dir)
		if !ok {
			c.report(spec.Pos(), "layers", "folder %q is in no layer: say in internal/archtest/rules.go what it may import", c.file.dir)
			return
		}
		if !layer.mayImport(target) && !(c.test && within(target, layer.Tests...)) {
			c.report(spec.Pos(), "arrows", "%s may not import %s: %s", layer.name(), display(target), layer.Why)
		}
	}
}

// checkDriver reports a driver that is imported by a package that should only
// know its interface.
func (c *checker) checkDriver(pos token.Pos, driver string) {
	dir := c.file.dir
	if c.rules.driver(dir) == driver || within(dir, c.rules.DriverUsers...) || c.test && within(dir, c.rules.DriverTesters...) {
		return
	}
	c.report(pos, "drivers", "%s is a driver: only %s, its own folder and the tests of %s may import it",
		driver, strings.Join(c.rules.DriverUsers, ", "), strings.Join(c.rules.DriverTesters, ", "))
}

func (c *checker) checkLength() {
	if n := c.file.lines; !c.file.generated && n > c.rules.MaxFile {
		c.report(token.NoPos, "length", "%d lines are more than %d: split the file by verb", n, c.rules.MaxFile)
	}
}

// checkSyntax checks the declarations and statements of a file.
func (c *checker) checkSyntax() {
	guest := within(c.file.dir, c.rules.Guests...)
	for _, decl := range c.file.syntax.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" && !guest && !c.file.generated {
			c.report(f.Pos(), "init", "func init runs before anybody asks: make it a function that main calls")
		}
	}
	ast.Inspect(c.file.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !guest && !c.test {
				c.checkGo(n)
			}
		case *ast.SelectorExpr:
			if !guest {
				c.checkSelector(n)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && !guest && (f.Name == "print" || f.Name == "println") {
				c.report(n.Pos(), "print", "%s is for debugging", f.Name)
			}
		}
		return true
	})
}

func (c *checker) checkGo(stmt *ast.GoStmt) {
	c.started[c.file.dir] = true
	if _, ok := c.rules.Goroutines[c.file.dir]; !ok {
		c.report(stmt.Pos(), "goroutines", "a bare go statement: use host/scope, or write the reason into internal/archtest/rules.go")
	}
}

// checkSelector finds uses of functions that are not allowed here.
func (c *checker) checkSelector(sel *ast.SelectorExpr) {
	pkg, ok := sel.X.(*ast.Ident)
	if !ok {
		return
	}
	switch target := c.file.imports[pkg.Name]; {
	case target == "fmt" && strings.HasPrefix(sel.Sel.Name, "Print") && !c.test && !within(c.file.dir, c.rules.Printers...):
		c.report(sel.Pos(), "print", "fmt.%s writes to the program's output: only commands own that", sel.Sel.Name)
	case target == "time" && sel.Sel.Name == "Sleep" && c.test && c.file.imports["synctest"] == "":
		// In a synctest bubble a sleep takes no time and is how time passes.
		c.report(sel.Pos(), "sleep", "time.Sleep in a test: use testing/synctest or wait for a signal")
	}
}

// checkGoroutineList finds entries of the list that are stale, or whose package
// doesn't say why it starts goroutines.
func (c *checker) checkGoroutineList() {
	for dir := range c.rules.Goroutines {
		var first *file
		said := false
		for _, f := range c.tree.files {
			if f.dir != dir || c.rules.isTest(f) {
				continue
			}
			if first == nil {
				first = f
			}
			said = said || strings.Contains(f.doc, "goroutine")
		}
		if first == nil {
			continue // a fixture or a part that doesn't exist
		}
		c.file = first
		if !c.started[dir] {
			c.report(token.NoPos, "goroutines", "%s is listed in internal/archtest/rules.go but starts no goroutine", dir)
		} else if !said {
			c.report(token.NoPos, "goroutines", "the doc comment of package %s doesn't say why it starts a goroutine", dir)
		}
	}
}

func display(dir string) string {
	if dir == "" {
		return "the root package"
	}
	return dir
}
