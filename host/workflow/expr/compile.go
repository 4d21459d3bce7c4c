package expr

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// Place says where an expression is used.
type Place struct {
	Kind Kind
	// Step is the step it belongs to; empty = the workflow.
	Step string
	// Item says that item and index are available.
	Item bool
	// Above says whether a step comes before, so that it has ended when the expression runs;
	// nil = all do.
	Above func(step string) bool
}

// key identifies identical programs. own is the step, where that matters.
type key struct {
	source string
	kind   Kind
	item   bool
	own    string
}

// Compile checks an expression and prepares it. The error joins all faults, each an invalid
// [jobhost.Error] whose message begins with line and column.
func (e *Env) Compile(source string, at Place) (*Program, error) {
	k := key{source: source, kind: at.Kind, item: at.Item}
	if at.Kind == Terminate {
		k.own = at.Step
	}
	e.mu.Lock()
	p := e.cache[k]
	e.mu.Unlock()
	if p == nil {
		var err error
		if p, err = e.compile(source, at); err != nil {
			return nil, err
		}
		e.mu.Lock()
		e.cache[k] = p
		e.mu.Unlock()
	}
	if at.Above == nil {
		return p, nil
	}
	return p, e.checkAbove(p, at)
}

// checkAbove reports the steps that have not ended when the expression runs.
func (e *Env) checkAbove(p *Program, at Place) error {
	var faults []fault
	for _, r := range p.reads {
		switch {
		case at.Above(r.step):
		case r.step == at.Step && at.Kind == Terminate:
			faults = append(faults, fault{r.start, "a step does not see itself", "write output for what it has returned"})
		case r.step == at.Step:
			faults = append(faults, fault{r.start, "a step does not see itself", ""})
		case e.steps[r.step].Fallback != "":
			faults = append(faults, fault{
				r.start, fmt.Sprintf("step %s is the fallback of another", text.Quote(r.step, text.Short)),
				fmt.Sprintf("look at %s: it has the output of its fallback", stepText(e.steps[r.step].Fallback)),
			})
		default:
			faults = append(faults, fault{
				r.start, fmt.Sprintf("step %s does not come before this one", text.Quote(r.step, text.Short)),
				fmt.Sprintf("add %q to needs, here or in a step above", r.step),
			})
		}
	}
	return asError(faults)
}

func (e *Env) compile(source string, at Place) (p *Program, err error) {
	// A panic in a library that parses strangers' input must not end the host; when programs
	// run, CEL itself recovers.
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, jobhost.Invalid("", "write it in another way", "CEL can't compile this expression: %s", text.Message(fmt.Sprint(r)))
		}
	}()
	if len(source) > jobhost.MaxExpressionSize {
		return nil, tooLarge("", "an expression of %d bytes is longer than %d", len(source), jobhost.MaxExpressionSize)
	}
	if strings.TrimSpace(source) == "" {
		return nil, jobhost.Invalid("", "", "the expression is empty")
	}
	parsed, issues := e.cel.Parse(source)
	if issues.Err() != nil {
		return nil, asError(e.translate(issues))
	}
	tree := parsed.NativeRep()
	w := &walker{
		env: e, place: at, info: tree.SourceInfo(), make: ast.NewExprFactory(), nextID: ast.MaxID(tree) + 1,
		used: map[string]bool{},
	}
	passes := passedBy(tree.Expr())
	w.use(tree.Expr())
	if len(w.faults) > 0 {
		return nil, asError(w.faults)
	}
	checked, issues := e.cel.Check(parsed)
	if issues.Err() != nil {
		return nil, asError(e.translate(issues))
	}
	if err := checkResult(at.Kind, checked.OutputType()); err != nil {
		return nil, err
	}
	if err := e.checkCost(checked); err != nil {
		return nil, err
	}
	program, err := e.cel.Program(checked, cel.OptimizeRegex(interpreter.MatchesRegexOptimization), cel.CostLimit(MaxCost), cel.CostTracking(actual{}), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, jobhost.Invalid("", "", "%s", text.Message(err.Error()))
	}
	p = &Program{kind: at.Kind, source: source, program: program, passes: passes, used: w.used}
	for _, r := range w.reads {
		p.reads = append(p.reads, place{r.step, w.info.GetStartLocation(r.at)})
	}
	p.steps = slices.Sorted(maps.Keys(stepSet(p.reads)))
	return p, nil
}

func stepSet(reads []place) map[string]bool {
	set := map[string]bool{}
	for _, r := range reads {
		set[r.step] = true
	}
	return set
}

// checkResult checks the type of an expression, as far as it is known.
func checkResult(k Kind, t *cel.Type) error {
	known := t.Kind() != types.DynKind && t.Kind() != types.AnyKind
	switch k {
	case When, Terminate:
		if known && !t.IsExactType(cel.BoolType) {
			return jobhost.Invalid("", "write a comparison, such as input.size > 10", "the condition is of type %s, not bool", typeName(t))
		}
	case FanOut:
		if known && t.Kind() != types.ListKind {
			return jobhost.Invalid("", "", "fan_out is of type %s, not a list", typeName(t))
		}
	case Input, Output:
		if t.Kind() == types.TypeKind {
			return jobhost.Invalid("", "", "a type is not a value of JSON")
		}
	}
	return nil
}

func typeName(t *cel.Type) string {
	if t.Kind() == types.NullTypeKind {
		return "null"
	}
	return text.Message(cel.FormatCELType(t))
}

// passedBy returns the value that an expression passes on unchanged, if that is all it does.
func passedBy(e ast.Expr) Passed {
	switch e.Kind() {
	case ast.IdentKind:
		if name := e.AsIdent(); name == "input" || name == "item" {
			return Passed{Root: name}
		}
	case ast.SelectKind:
		s := e.AsSelect()
		if s.IsTestOnly() || s.FieldName() != "output" {
			return Passed{}
		}
		if step, ok := stepName(s.Operand()); ok {
			return Passed{Root: "steps", Step: step}
		}
	}
	return Passed{}
}

// stepName returns NAME of steps.NAME and steps["NAME"].
func stepName(e ast.Expr) (string, bool) {
	isSteps := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "steps" }
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().FieldName(), isSteps(e.AsSelect().Operand()) && !e.AsSelect().IsTestOnly()
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() != "_[_]" || !isSteps(c.Args()[0]) || c.Args()[1].Kind() != ast.LiteralKind {
			return "", false
		}
		name, ok := c.Args()[1].AsLiteral().(types.String)
		return string(name), ok
	}
	return "", false
}
