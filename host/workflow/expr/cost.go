package expr

import (
	"errors"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// checkCost refuses expressions that would cost too much even for ordinary data.
func (e *Env) checkCost(a *cel.Ast) error {
	estimate, err := e.cel.EstimateCost(a, sizes{})
	if err != nil {
		return jobhost.Invalid("", "", "%s", text.Message(err.Error()))
	}
	if estimate.Max > MaxCost {
		return jobhost.Invalid("", "use fewer loops within loops, or let a worker do it",
			"the expression is too much work: %s, for lists of %d elements", operations(estimate.Max), typicalSize)
	}
	return nil
}

func operations(n uint64) string {
	if n > 1e15 {
		return "more operations than can be counted"
	}
	return fmt.Sprintf("about %.1g operations, of at most %.1g", float64(n), float64(MaxCost))
}

// sizes provides the estimate with sizes of values about which nothing is known.
type sizes struct{}

// EstimateCallCost implements [cost.Estimator]. CEL assumes a member of a value of unknown
// type to be of any size, and would therefore refuse a[0] + b and a.?b.orValue("") + c.
func (sizes) EstimateCallCost(function, _ string, _ *cost.AstNode, args []cost.AstNode) *cost.CallEstimate {
	switch {
	case function == "orValue", function == "value":
	case function == operators.Index && len(args) > 0 && args[0].Type().Kind() == types.DynKind:
	default:
		return nil
	}
	return cost.NewCallEstimate(cost.FixedCostEstimate(1), &cost.SizeEstimate{Min: 0, Max: typicalSize})
}

func (sizes) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	typical := &cost.SizeEstimate{Min: 0, Max: typicalSize}
	if n.Expr() == nil { // a member, of which CEL knows at most the type
		if t := n.Type(); t != nil && (t.Kind() == types.StringKind || t.Kind() == types.BytesKind) {
			return typical
		}
		return nil
	}
	switch n.Expr().Kind() {
	case ast.ListKind, ast.MapKind, ast.LiteralKind:
		return nil // CEL counts them
	}
	return typical
}

// actual counts the cost of calls that depends on the size of their arguments. CEL counts it
// only if it knows the types at compile time, and those of JSON come later.
type actual struct{}

// CallCost implements [cost.ActualCostEstimator].
func (actual) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	n := uint64(1)
	switch function {
	case operators.Add, "string", "bytes":
		if _, isList := result.(traits.Lister); !isList { // lists are joined without a copy, as map() does for each element
			n += weight(result)
		}
	case operators.Equals, operators.NotEquals:
		n += min(weight(args[0]), weight(args[1]))
	case inOrder:
		n += weight(result)
	case operators.In:
		n += weight(args[1])
	case "contains", "startsWith", "endsWith":
		n += weight(args[0])
	case "matches":
		n += (1 + weight(args[0])) * (1 + weight(args[1]))
	default:
		return nil
	}
	return &n
}

func weight(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / 10
	case types.Bytes:
		return uint64(len(v)) / 10
	case traits.Sizer:
		if n, ok := v.Size().(types.Int); ok && n > 0 {
			return uint64(n)
		}
	}
	return 0
}

// limit converts an error that ended a run to one that people understand.
func limit(err error) error {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return tooLarge("select less, or let a worker do it", "the expression took more than %d operations", MaxCost)
	}
	return jobhost.Invalid("", "", "%s", text.Message(err.Error()))
}
