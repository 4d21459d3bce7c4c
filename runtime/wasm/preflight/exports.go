package preflight

import (
	"strings"

	"github.com/jobhost/jobhost/runtime/module"
)

// Functions returns the types of the exported functions by name, as [Signature]
// formats them.
func Functions(m *module.Module) map[string]string {
	all := make(map[string]string, len(m.Exports))
	for _, e := range m.Exports {
		if e.Kind != module.KindFunction {
			continue
		}
		if t, ok := m.FunctionType(e.Index); !ok {
			continue
		} else if int(e.Index) < m.Imported[module.KindFunction] {
			all[e.Name] = "its import " + Signature(t) // the host's own function, which a job can't call
		} else {
			all[e.Name] = Signature(t)
		}
	}
	return all
}

// ExportsMemory reports whether a memory that the module itself defines is
// exported under a name.
func ExportsMemory(m *module.Module, name string) bool {
	for _, e := range m.Exports {
		if e.Kind == module.KindMemory && e.Name == name {
			return int(e.Index) >= m.Imported[module.KindMemory]
		}
	}
	return false
}

// Signature formats a type like (i32, i32) → i64.
func Signature(t module.FuncType) string {
	results := typeNames(t.Results)
	if len(t.Results) != 1 {
		results = "(" + results + ")"
	}
	return "(" + typeNames(t.Params) + ") → " + results
}

// shownTypes is the maximum number of parameters or results in an error.
const shownTypes = 16

func typeNames(types []byte) string {
	var names []string
	for i, t := range types {
		if i == shownTypes {
			names = append(names, "…")
			break
		}
		names = append(names, typeName(t))
	}
	return strings.Join(names, ", ")
}

func typeName(t byte) string {
	switch t {
	case module.I32:
		return "i32"
	case module.I64:
		return "i64"
	case module.F32:
		return "f32"
	case module.F64:
		return "f64"
	case module.V128:
		return "v128"
	case module.FuncRef:
		return "funcref"
	}
	return "externref"
}
