package expr

import (
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// markers declares a function for each type that JSON Schemas can specify,
// which returns its argument. Values of JSON have no types that CEL could
// check, so the compiler wraps what a schema describes in one of these. Their
// names can't be written in an expression.
func markers() []cel.EnvOption {
	var options []cel.EnvOption
	for kind, result := range map[kind]*cel.Type{
		chars: cel.StringType, whole: cel.IntType, boolean: cel.BoolType, list: cel.ListType(cel.DynType),
		object: cel.MapType(cel.StringType, cel.DynType), moment: cel.TimestampType,
	} {
		name := kind.marker()
		options = append(options, cel.Function(name, cel.Overload(name+"_dyn", []*cel.Type{cel.DynType}, result,
			cel.OverloadIsNonStrict(), cel.UnaryBinding(func(v ref.Val) ref.Val { return v }))))
	}
	anything := cel.TypeParamType("A")
	return append(options, cel.Function(inOrder, cel.Overload(inOrder+"_any", []*cel.Type{anything}, anything, cel.UnaryBinding(ordered))))
}

// inOrder is the function that the compiler puts around what a loop iterates
// over. Go's maps have no order, and neither do CEL's: a selection would give a
// different result each time.
const inOrder = "@in_order"

func ordered(v ref.Val) ref.Val {
	if m, ok := v.(traits.Mapper); ok {
		return orderedMap{m}
	}
	return v
}

// orderedMap iterates over its keys in order.
type orderedMap struct{ traits.Mapper }

// Iterator implements [traits.Iterable].
func (m orderedMap) Iterator() traits.Iterator {
	var keys []ref.Val
	for i := m.Mapper.Iterator(); i.HasNext() == types.True; {
		keys = append(keys, i.Next())
	}
	slices.SortFunc(keys, func(a, b ref.Val) int {
		if c, ok := a.(traits.Comparer); ok {
			if n, ok := c.Compare(b).(types.Int); ok && n != 0 {
				return int(n)
			}
		}
		return strings.Compare(a.Type().TypeName(), b.Type().TypeName())
	})
	return types.NewRefValList(types.DefaultTypeAdapter, keys).Iterator()
}
