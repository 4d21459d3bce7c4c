package preflight

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime/module"
)

// Offer is what a host provides for import: its modules and their functions, by
// name.
type Offer map[string]map[string]Offered

// Offered is a function that a host provides.
type Offered struct {
	Type module.FuncType
	// Missing is the grant that the worker would need but doesn't have, such as
	// "http"; empty = it may call the function.
	Missing string
}

// Imports checks that each import is a function that the host provides. The error
// names the first that is not, and is of type [*jobhost.Error]: with code
// [jobhost.CodeDenied] when only a grant is missing, otherwise
// [jobhost.CodeInvalid]. For a module made for another host it says which one.
func Imports(m *module.Module, offer Offer) error {
	if err := Foreign(m, offer); err != nil {
		return err
	}
	for _, i := range m.Imports {
		if err := offer.check(m, i); err != nil {
			return err
		}
	}
	return nil
}

func (o Offer) check(m *module.Module, i module.Import) error {
	name := shown(i.Module + "." + i.Name)
	if i.Kind != module.KindFunction {
		kind := [...]string{module.KindTable: "table", module.KindMemory: "memory", module.KindGlobal: "global"}[i.Kind]
		return jobhost.Invalid("", "a worker has its own memory, tables and globals; link it as a module that stands alone",
			"imports %s, a %s and not a function", name, kind)
	}
	functions, ok := o[i.Module]
	if !ok {
		return jobhost.Invalid("", o.moduleHint(i.Module), "imports %s, but this host has no module %s", name, shown(i.Module))
	}
	f, ok := functions[i.Name]
	if !ok {
		return jobhost.Invalid("", o.functionHint(i.Module, i.Name), "imports %s, which this host doesn't offer", name)
	}
	if got := m.Types[i.Type]; !bytes.Equal(got.Params, f.Type.Params) || !bytes.Equal(got.Results, f.Type.Results) {
		return jobhost.Invalid("", "see docs/abi.md", "imports %s as %s, the host's is %s", name, Signature(got), Signature(f.Type))
	}
	if f.Missing != "" {
		return &jobhost.Error{
			Code:    jobhost.CodeDenied,
			Message: fmt.Sprintf("imports %s, which needs the grant %s", name, f.Missing),
			Hint:    "grant it to the worker in the manifest, if you trust it with that",
		}
	}
	return nil
}

// moduleHint says what modules there are.
func (o Offer) moduleHint(name string) string {
	hint := "workers import from " + strings.Join(slices.Sorted(maps.Keys(o)), " and ")
	switch {
	case name == "env":
		hint += "; a function that is declared but never defined is imported from env"
	case strings.HasPrefix(name, "extism"):
		hint += "; for an Extism plugin, set the worker's abi to extism"
	}
	return hint
}

// functionHint names the function that was probably meant, or lists all.
func (o Offer) functionHint(in, name string) string {
	for _, other := range slices.Sorted(maps.Keys(o)) {
		if _, ok := o[other][name]; ok {
			return "module " + other + " has one of this name"
		}
	}
	names := slices.Sorted(maps.Keys(o[in]))
	all := "module " + in + " has " + strings.Join(names, ", ")
	switch best := text.Nearest(name, names); {
	case best == "":
		return all
	case len(best) > len(name)+1: // it contains the name, as others may
		return "did you mean " + best + "? " + all
	default:
		return "did you mean " + best + "?"
	}
}

// shown makes a guest's name safe to show.
func shown(name string) string { return text.Line(name, 200) }
