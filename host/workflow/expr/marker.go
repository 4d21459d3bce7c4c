package expr

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types/ref"
)

// markers declares a function for each type that JSON Schemas can promise,
// which returns its argument. Values of JSON have no types that CEL could
// check, so the compiler wraps what a schema describes in one of these. Their
// names can't be written in an expression.
func markers() []cel.EnvOption {
	var options []cel.EnvOption
	for kind, result := range map[kind]*cel.Type{
		text: cel.StringType, whole: cel.IntType, boolean: cel.BoolType, list: cel.ListType(cel.DynType),
		object: cel.MapType(cel.StringType, cel.DynType), moment: cel.TimestampType,
	} {
		name := kind.marker()
		options = append(options, cel.Function(name, cel.Overload(name+"_dyn", []*cel.Type{cel.DynType}, result,
			cel.OverloadIsNonStrict(), cel.UnaryBinding(func(v ref.Val) ref.Val { return v }))))
	}
	return options
}
