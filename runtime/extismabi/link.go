package extismabi

import (
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime/extism"
	"github.com/jobhost/jobhost/runtime/module"
)

// Linked is one of the modules of a plugin.
type Linked struct {
	// Name is what others import it by. Empty = it is the only or the last one.
	Name    string
	Imports []module.Import
}

// Order returns the indices of a plugin's modules in the order in which to
// instantiate them: each after those that it imports from, the main one last.
// An import cycle is an error that shows it.
func Order(modules []Linked) ([]int, error) {
	names := make([]string, len(modules))
	for n, m := range modules {
		names[n] = m.Name
	}
	main, err := extism.MainModule(names)
	if err != nil {
		return nil, err
	}
	names[main] = extism.Main
	// No module may import from the main one: see Check.
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

// ordering is a depth-first traversal of the imports of modules.
type ordering struct {
	modules []Linked
	names   []string
	seen    []bool
	order   []int
}

// visit adds a module to the order, after its dependencies. path leads to it.
func (o *ordering) visit(n int, path []int) error {
	if at := slices.Index(path, n); at >= 0 {
		var circle []string
		for _, m := range append(path[at:], n) {
			circle = append(circle, text.Line(o.names[m], 100))
		}
		return jobhost.Invalid("", "let one of them do without the other", "has modules that import each other: %s", strings.Join(circle, " → "))
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
