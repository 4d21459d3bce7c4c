// Package expr compiles and runs the expressions of workflows, which are in CEL
// (https://cel.dev): conditions, and selections of values from JSON.
//
// An expression has no side effects, has no access to clocks, files or the network,
// and gives the same result for the same data. Its cost is bounded twice: by an
// estimate when it is compiled, and by counting when it runs.
//
// Values are JSON. A whole number that fits into 64 bits is an int, however it is
// written (1, 1.0, 1e3), any other a double. CEL never mixes the two in arithmetic:
// double(input.score) * 0.5 works for both.
package expr

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"

	"github.com/jobhost/jobhost"
)

// Fixed limits.
const (
	MaxResultBytes = 1 << 20     // of what an expression returns, as JSON
	MaxCost        = 2_000_000   // of one run, in CEL's units: about one for each operation and for each ten bytes of text
	MaxTotalCost   = 5 * MaxCost // of all runs on the same [Data], such as the inputs of a fan-out
	maxDepth       = 64          // of values
	maxRegexp      = 1_000       // instructions of a regular expression within an expression
	typicalSize    = 100         // elements that the estimate assumes for lists of unknown size
	interruptEvery = 100         // loop iterations between two checks of the context
)

// Kind is the purpose of an expression, which determines what it may refer to and
// return.
type Kind uint8

// The kinds.
const (
	When      Kind = iota // a condition: bool
	Input                 // a payload; for a step with fan_out it sees item and index
	FanOut                // a list
	Terminate             // a condition that sees the step's own output
	Output                // the output of a workflow, which sees all steps
)

// String returns the name of the setting.
func (k Kind) String() string {
	return [...]string{"when", "input", "fan_out", "terminate", "output"}[k]
}

// Step is what is known about a step when expressions are compiled.
type Step struct {
	Name string
	// Output is a JSON Schema of the step's output; nil = anything.
	Output json.RawMessage
	// List says that the output is a list of what the schema describes.
	List bool
	// Fallback is the step that this one replaces; empty = none.
	Fallback string
}

// Env is what the expressions of one workflow can refer to. It is safe for
// concurrent use.
type Env struct {
	cel       *cel.Env
	steps     map[string]Step
	names     []string // of the steps, sorted
	input     shape
	failure   shape // of each step
	functions []string

	mu    sync.Mutex
	cache map[key]*Program // protected by mu: many steps have the same expressions
}

// New returns the environment of a workflow with these steps and this JSON Schema of
// its input. Invalid schemas count as "anything".
func New(input json.RawMessage, steps []Step) (*Env, error) {
	options := []cel.EnvOption{
		cel.Variable("input", cel.DynType),
		cel.Variable("steps", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("item", cel.DynType),
		cel.Variable("index", cel.IntType),
		cel.Variable("output", cel.DynType),
		cel.Variable("workflow", cel.MapType(cel.StringType, cel.DynType)),
		cel.OptionalTypes(),
		ext.TwoVarComprehensions(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(jobhost.MaxExpressionSize),
		cel.ParserRecursionLimit(maxDepth),
		cel.ExpressionNodeLimit(10_000),
		cel.RegexProgramSizeLimit(maxRegexp),
	}
	base, err := cel.NewEnv(append(options, markers()...)...)
	if err != nil {
		return nil, fmt.Errorf("prepare expressions: %w", err)
	}
	e := &Env{cel: base, steps: make(map[string]Step, len(steps)), input: schemaShape(input), failure: failureShape(), cache: map[key]*Program{}}
	for _, s := range steps {
		e.steps[s.Name] = s
		e.names = append(e.names, s.Name)
	}
	slices.Sort(e.names)
	for name := range base.Functions() {
		if name[0] >= 'a' && name[0] <= 'z' {
			e.functions = append(e.functions, name)
		}
	}
	slices.Sort(e.functions)
	return e, nil
}
