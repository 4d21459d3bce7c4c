package extismabi

import (
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/module"
)

// Main is the name of the module whose exports are the entries.
const Main = "main"

// Linked is one of the modules of a plugin.
type Linked struct {
	// Name is what others import it by. Empty = it is the only or the last one.
	Name    string
	Imports []module.Import
}

// maxModules bounds the modules of a plugin.
const maxModules = 64

// MainModule returns which of a plugin's modules is the main one: the one
// named main, or else the last. All others need a name that nobody else has.
func MainModule(names []string) (int, error) {
	if n := len(names); n == 0 || n > maxModules {
		return 0, invalid("", "has %d modules; a plugin has 1 to %d", n, maxModules)
	}
	main := slices.Index(names, Main)
	if main < 0 {
		main = len(names) - 1
	}
	for n, name := range names {
		switch {
		case n == main:
		case name == "":
			return 0, invalid(`give it the name that others import it by; the main module is named "main", or is the last`,
				"has a module without a name, number %d", n+1)
		case name == Module || name == wasi_snapshot_preview1.ModuleName:
			return 0, invalid("rename it", "has a module named %s, which is a name of the host's", name)
		case slices.Index(names, name) != n:
			return 0, invalid("rename one of them", "has two modules named %s", hostcall.Escape([]byte(name), 100))
		}
	}
	return main, nil
}

// Order returns the numbers of a plugin's modules in the order in which to
// instantiate them: each after those that it imports from, the main one last.
// Modules that need each other in a circle are an error that shows it.
func Order(modules []Linked) ([]int, error) {
	names := make([]string, len(modules))
	for n, m := range modules {
		names[n] = m.Name
	}
	main, err := MainModule(names)
	if err != nil {
		return nil, err
	}
	names[main] = Main
	// Nobody may import from the main module: see Check.
	names[main] = ""
	o := ordering{modules: modules, names: names, seen: make([]bool, len(modules))}
	for n := range modules {
		if n != main {
			if err := o.visit(n, nil); err != nil {
				return nil, err
			}
		}
	}
	return append(o.order, main), nil
}

// ordering is a walk from modules to what they import from.
type ordering struct {
	modules []Linked
	names   []string
	seen    []bool
	order   []int
}

// visit puts a module into the order, after what it needs. path leads to it.
func (o *ordering) visit(n int, path []int) error {
	if at := slices.Index(path, n); at >= 0 {
		var circle []string
		for _, m := range append(path[at:], n) {
			circle = append(circle, hostcall.Escape([]byte(o.names[m]), 100))
		}
		return invalid("let one of them do without the other", "has modules that import each other: %s", strings.Join(circle, " → "))
	}
	if o.seen[n] {
		return nil
	}
	path = append(path, n)
	for _, i := range o.modules[n].Imports {
		if from := slices.Index(o.names, i.Module); i.Module != "" && from >= 0 {
			if err := o.visit(from, path); err != nil {
				return err
			}
		}
	}
	o.seen[n] = true
	o.order = append(o.order, n)
	return nil
}
