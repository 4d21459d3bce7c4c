// Package plan turns the definition of a workflow into a form that can be run and drawn: steps in topological
// order, compiled expressions and schemas. All faults of a definition are reported at once, before anything
// runs.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/expr"
	"github.com/jobhost/jobhost/host/workflow/schema"
)

// Env is what a workflow can refer to.
type Env struct {
	// Workers are those of the host by name; nil = they are not checked.
	Workers map[string]Worker
	// Workflows are the other definitions by name; nil = they are not checked.
	Workflows map[string]*jobhost.Workflow
	// MaxNesting is how deep workflows can be nested as steps, including the outermost; 0 =
	// [jobhost.MaxDepth], as for jobs.
	MaxNesting int
}

// Worker is what a plan checks about a worker.
type Worker struct {
	// Entries are those that jobs can name; nil = unknown.
	Entries []string
}

// Plan is a workflow without faults. It is immutable and safe for concurrent use.
type Plan struct {
	// Workflow is the definition, with its steps in their original order.
	Workflow jobhost.Workflow
	// Steps are in topological order: each after those it needs, and after the step it is the fallback of.
	// The indexes below refer to it.
	Steps []Step
	// Levels is the maximum number of steps that follow each other.
	Levels int
	// Hash is the SHA-256 of the definition as canonical JSON, in hex: the same for equivalent definitions.
	Hash string
	// Output is the output of the workflow; nil = that of OutputStep, or if this is -1 a map of the outputs
	// of the steps in Last.
	Output     *expr.Program
	OutputStep int
	// Last are the steps that no step needs.
	Last []int32
	// InputSchema and OutputSchema; nil = anything.
	InputSchema, OutputSchema *schema.Schema

	byName map[string]int32
}

// Step is a step of a plan.
type Step struct {
	*jobhost.Step
	// Index is the index in [Plan.Steps], and Source the one in the definition.
	Index, Source int
	// Level is 0 for steps without needs, and otherwise one more than the highest needed.
	Level int
	// Needs are the steps before this one, and Next those that need it, both in order.
	Needs, Next []int32
	// Fallback is the step that replaces this one if it fails, and FallbackOf the one that this step
	// replaces; -1 = none. FallbackWorker is a worker used as fallback; empty = none.
	Fallback, FallbackOf int
	FallbackWorker       string
	// When, Input, FanOut and Terminate; nil = the definition has none.
	When, Input, FanOut, Terminate *expr.Program
	// InputSchema and OutputSchema; nil = anything.
	InputSchema, OutputSchema *schema.Schema
}

// Kind says what a step does.
type Kind string

// The kinds.
const (
	KindWorker   Kind = "worker"
	KindWorkflow Kind = "workflow"
	KindSignal   Kind = "signal"
	KindSleep    Kind = "sleep"
)

// KindOf returns what a step does; the first of its kinds if it has several, or "".
func KindOf(s *jobhost.Step) Kind {
	switch {
	case s.Worker != "":
		return KindWorker
	case s.Workflow != "":
		return KindWorkflow
	case s.Signal != "":
		return KindSignal
	case s.Sleep != 0:
		return KindSleep
	}
	return ""
}

// Step returns the step with a name.
func (p *Plan) Step(name string) (*Step, bool) {
	i, ok := p.byName[name]
	if !ok {
		return nil, false
	}
	return &p.Steps[i], true
}

// Ancestors returns the steps that come before one, in order. For a fallback these are the step that it
// replaces, and those before that.
func (p *Plan) Ancestors(index int) []int32 {
	seen := make([]bool, index+1)
	for i := index; i >= 0; i-- { // all steps before it have lower indexes
		if i != index && !seen[i] {
			continue
		}
		for _, need := range p.Steps[i].Needs {
			seen[need] = true
		}
		if f := p.Steps[i].FallbackOf; f >= 0 {
			seen[f] = true
		}
	}
	var all []int32
	for i, ok := range seen {
		if ok {
			all = append(all, int32(i))
		}
	}
	return all
}

// Compile checks a workflow and plans it. The error joins all faults, up to a hundred, each a [jobhost.Error]
// with the field: name, steps.NAME.when, or steps[3].name for a step without a valid name.
func Compile(w jobhost.Workflow, env Env) (*Plan, error) {
	c := &compiler{w: &w, env: env, byName: make(map[string]int, len(w.Steps)), schemas: map[string]*schema.Schema{}}
	if !c.checkSize() {
		return nil, c.faults.join()
	}
	hash, err := Hash(&w)
	if err != nil {
		return nil, err
	}
	c.checkWorkflow()
	c.nameSteps()
	c.checkSteps()
	c.connect()
	c.checkFallbacks()
	c.checkGraph()
	c.checkOutputs()
	c.checkRecursion()
	c.parseSchemas()
	if err := c.compileExpressions(); err != nil {
		return nil, err
	}
	c.checkFit()
	if err := c.faults.join(); err != nil {
		return nil, err
	}
	return c.plan(hash), nil
}

// Hash returns the SHA-256 of a definition as canonical JSON, in hex. Errors: invalid for schemas that aren't
// JSON, too_large beyond [jobhost.MaxWorkflowBytes].
func Hash(w *jobhost.Workflow) (string, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return "", &jobhost.Error{Code: jobhost.CodeInvalid, Message: "the workflow can't be written as JSON: " + printable(errors.Unwrap(err), err)}
	}
	if len(text) > jobhost.MaxWorkflowBytes {
		return "", &jobhost.Error{
			Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("a workflow of %d bytes is longer than %d", len(text), jobhost.MaxWorkflowBytes),
			Hint: "make parts of it workflows of their own",
		}
	}
	canonical := jsontext.Value(text)
	if err := canonical.Canonicalize(); err != nil {
		return "", &jobhost.Error{Code: jobhost.CodeInvalid, Message: "a schema of the workflow is not strict JSON: " + printable(nil, err)}
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}
