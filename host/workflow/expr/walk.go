package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/jobhost/jobhost/internal/text"
)

// read is a place where an expression refers to a step.
type read struct {
	step string
	at   int64 // the node
}

// walker checks what an expression refers to, finds what doesn't exist, and wraps values
// whose type a schema specifies in markers.
type walker struct {
	env    *Env
	place  Place
	info   *ast.SourceInfo
	make   ast.ExprFactory
	nextID int64
	scope  []variable // of loops, innermost last
	reads  []read
	faults []fault
	used   map[string]bool // roots
}

type variable struct {
	name string
	shape
}

// roots are the names that expressions start with.
func roots() []string { return []string{"input", "steps", "item", "index", "output", "workflow"} }

// typeNames are identifiers that CEL itself knows.
func typeNames() []string {
	return []string{"bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "optional_type"}
}

func (w *walker) report(at int64, hint, format string, args ...any) {
	w.faults = append(w.faults, fault{start: w.info.GetStartLocation(at), message: fmt.Sprintf(format, args...), hint: hint})
}

// use walks an expression whose value is used directly, and passes what is known about it to
// the type checker.
func (w *walker) use(e ast.Expr) shape {
	s := w.walk(e)
	if s.kind == unknown {
		return s
	}
	switch e.Kind() {
	case ast.SelectKind, ast.IdentKind, ast.CallKind:
	default:
		return s
	}
	w.wrap(e, s.kind.marker())
	return s
}

// wrap puts a call around an expression.
func (w *walker) wrap(e ast.Expr, function string) {
	w.nextID++
	inner := w.make.NewUnspecifiedExpr(w.nextID)
	inner.SetKindCase(e)
	if r, ok := w.info.GetOffsetRange(e.ID()); ok {
		w.info.SetOffsetRange(w.nextID, r)
	}
	e.SetKindCase(w.make.NewCall(e.ID(), function, inner))
}

// walk returns the shape of an expression and reports its faults.
func (w *walker) walk(e ast.Expr) shape {
	switch e.Kind() {
	case ast.IdentKind:
		return w.ident(e)
	case ast.SelectKind:
		return w.choose(e)
	case ast.CallKind:
		return w.call(e)
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			w.use(element)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			w.key(entry.AsMapEntry().Key())
			w.use(entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		w.report(e.ID(), `write a map, such as {"name": value}`, "there are no messages here")
	case ast.ComprehensionKind:
		w.loop(e)
	}
	return shape{}
}

// key walks the key of a map. CEL accepts any, and panics for those that Go can't compare.
func (w *walker) key(e ast.Expr) {
	switch e.Kind() {
	case ast.LiteralKind:
		switch e.AsLiteral().(type) {
		case types.String, types.Int, types.Uint, types.Bool:
		default:
			w.report(e.ID(), "", "the key of a map is text, a whole number or a bool")
		}
	case ast.ListKind, ast.MapKind, ast.StructKind, ast.ComprehensionKind:
		w.report(e.ID(), "", "the key of a map is text, a whole number or a bool")
	default:
		w.use(e)
	}
}

func (w *walker) ident(e ast.Expr) shape {
	name := e.AsIdent()
	if v := w.variable(name); v != nil {
		return v.shape
	}
	w.used[name] = true
	switch name {
	case "input":
		return w.env.input
	case "workflow":
		return workflowShape()
	case "steps":
		w.report(e.ID(), `write steps.NAME or steps["NAME"]`, "steps is not followed by the name of a step")
	case "item", "index":
		if !w.place.Item {
			w.report(e.ID(), "", "%s is only there in the input of a step with fan_out", name)
		}
	case "output":
		if w.place.Kind != Terminate {
			w.report(e.ID(), "write steps.NAME.output for the output of a step", "output is only there in terminate")
		}
		return outputShape(w.env.steps[w.place.Step])
	default:
		if !slices.Contains(typeNames(), name) {
			w.unknownName(e.ID(), name)
		}
	}
	return shape{}
}

func (w *walker) unknownName(at int64, name string) {
	known := roots()
	for _, v := range w.scope {
		known = append(known, v.name)
	}
	hint := "there are input, steps, item, index, output and workflow"
	if near := text.Nearest(name, known); near != "" {
		hint = "did you mean " + near + "?"
	} else if _, ok := w.env.steps[name]; ok {
		hint = "did you mean " + stepText(name) + "?"
	}
	w.report(at, hint, "there is no %s", text.Quote(name, text.Short))
}

// stepText formats a reference to a step.
func stepText(name string) string {
	if strings.Contains(name, "-") || name[0] >= '0' && name[0] <= '9' {
		return fmt.Sprintf("steps[%q]", name)
	}
	return "steps." + name
}

func (w *walker) variable(name string) *variable {
	for i := len(w.scope) - 1; i >= 0; i-- {
		if w.scope[i].name == name {
			return &w.scope[i]
		}
	}
	return nil
}

// choose walks operand.field and has(operand.field).
func (w *walker) choose(e ast.Expr) shape {
	s := w.member(e.ID(), e.AsSelect().Operand(), e.AsSelect().FieldName(), e.AsSelect().IsTestOnly())
	if e.AsSelect().IsTestOnly() {
		return shape{} // CEL knows that it is a bool
	}
	return s
}

// member returns the shape of a member of operand. soft says that the member need not exist:
// the expression tests for it.
func (w *walker) member(at int64, operand ast.Expr, name string, soft bool) shape {
	if operand.Kind() == ast.IdentKind && operand.AsIdent() == "steps" && w.variable("steps") == nil {
		return w.step(at, name)
	}
	s := w.walk(operand)
	m, missing := s.field(name)
	if !missing || soft && s.fields == nil && s.schema["additionalProperties"] != false {
		return m
	}
	hint, names := "", s.names()
	if near := text.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	} else if len(names) > 0 && len(names) <= 8 {
		hint = "there are " + join(names)
	}
	if s.kind != unknown && s.kind != object {
		w.report(at, "", "%s is of type %s and has no field %s", describe(operand), s.kind, text.Quote(name, text.Short))
	} else {
		w.report(at, hint, "%s has no field %s", describe(operand), text.Quote(name, text.Short))
	}
	return shape{}
}

func (w *walker) step(at int64, name string) shape {
	w.used["steps"] = true
	s, ok := w.env.steps[name]
	if !ok {
		hint := ""
		if near := text.Nearest(name, w.env.names); near != "" {
			hint = "did you mean " + stepText(near) + "?"
		}
		w.report(at, hint, "there is no step %s", text.Quote(name, text.Short))
		return shape{}
	}
	w.reads = append(w.reads, read{step: name, at: at})
	return w.env.stepShape(s)
}

func (w *walker) call(e ast.Expr) shape {
	c := e.AsCall()
	args := c.Args()
	switch c.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		return w.index(e, args, c.FunctionName() != operators.Index)
	}
	if c.FunctionName() == "matches" && len(args) > 0 {
		w.pattern(args[len(args)-1])
	}
	if c.IsMemberFunction() && !w.namespace(c) {
		w.use(c.Target())
	}
	for _, arg := range args {
		w.use(arg)
	}
	return shape{}
}

// pattern checks a regular expression. One that comes from data would be compiled in each
// iteration of a loop, at a cost that CEL doesn't count.
func (w *walker) pattern(e ast.Expr) {
	if e.Kind() != ast.LiteralKind {
		w.report(e.ID(), "use contains, startsWith or endsWith with values", "a regular expression can only be written as text")
		return
	}
	if pattern, ok := e.AsLiteral().(types.String); ok {
		if _, err := regexp.Compile(string(pattern)); err != nil {
			w.report(e.ID(), "", "%s", text.Message(err.Error()))
		}
	}
}

// namespace reports whether target.function is the name of one function, such as optional.of.
func (w *walker) namespace(c ast.CallExpr) bool {
	t := c.Target()
	return t.Kind() == ast.IdentKind && w.variable(t.AsIdent()) == nil && w.env.cel.HasFunction(t.AsIdent()+"."+c.FunctionName())
}

// index walks operand[key], operand[?key] and operand.?key.
func (w *walker) index(e ast.Expr, args []ast.Expr, optional bool) shape {
	operand, key := args[0], args[1]
	var s shape
	if key.Kind() == ast.LiteralKind {
		if name, ok := key.AsLiteral().(types.String); ok {
			if wrapped(operand) {
				w.use(operand) // an optional, about which nothing is known
				return shape{}
			}
			s = w.member(e.ID(), operand, string(name), optional)
		} else {
			s = w.walk(operand).element()
		}
	} else {
		s = w.walk(operand).element()
		w.use(key)
	}
	if optional {
		return shape{}
	}
	return s
}

// wrapped reports whether an expression returns an optional value.
func wrapped(e ast.Expr) bool {
	if e.Kind() == ast.SelectKind {
		return wrapped(e.AsSelect().Operand())
	}
	if e.Kind() != ast.CallKind {
		return false
	}
	name := e.AsCall().FunctionName()
	return name == operators.OptIndex || name == operators.OptSelect || name == operators.Index && wrapped(e.AsCall().Args()[0])
}

// loop walks the expansion of macros such as all, exists, map and filter.
func (w *walker) loop(e ast.Expr) {
	c := e.AsComprehension()
	over := w.use(c.IterRange())
	if c.IterRange().Kind() != ast.ListKind {
		w.wrap(c.IterRange(), inOrder)
	}
	w.use(c.AccuInit())
	before := len(w.scope)
	declare := func(name string, s shape) {
		if slices.Contains(roots(), name) {
			w.report(e.ID(), "use another name for the variable", "%s is the name of something else", name)
		}
		w.scope = append(w.scope, variable{name, s})
	}
	first, second := over.element(), shape{}
	if c.HasIterVar2() {
		first, second = shape{}, first
	}
	declare(c.IterVar(), first)
	if c.HasIterVar2() {
		declare(c.IterVar2(), second)
	}
	declare(c.AccuVar(), shape{})
	w.use(c.LoopCondition())
	w.use(c.LoopStep())
	w.use(c.Result())
	w.scope = w.scope[:before]
}

// describe names an expression for a message.
func describe(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent()
	case ast.SelectKind:
		return describe(e.AsSelect().Operand()) + "." + e.AsSelect().FieldName()
	}
	return "the value"
}
