package workflow

import (
	"container/list"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
	"github.com/jobhost/jobhost/host/workflow/plan"
	"github.com/jobhost/jobhost/internal/text"
)

// definition is a definition ready to run.
type definition struct {
	*plan.Plan
	machine *machine.Machine
	hash    string // under which it is stored
	text    []byte // JSON
	index   map[string]int
	// checked is the generation of definitions against which its references were last checked.
	checked atomic.Int64
}

// newDefinition prepares a plan for running.
func newDefinition(p *plan.Plan, hash string) (*definition, error) {
	text, err := json.Marshal(&p.Workflow)
	if err != nil {
		return nil, fmt.Errorf("define workflow %s: %w", p.Workflow.Name, err)
	}
	c, err := p.Machine()
	if err != nil {
		return nil, err
	}
	d := &definition{Plan: p, machine: c, hash: hash, text: text, index: make(map[string]int, len(p.Workflow.Steps))}
	for i := range p.Workflow.Steps {
		d.index[p.Workflow.Steps[i].Name] = i
	}
	return d, nil
}

// step returns the step with an index.
func (d *definition) step(i int) *jobhost.Step { return &d.Workflow.Steps[i] }

// hasFallbackWorker reports whether the fallback of a step is a worker rather than a step.
func (d *definition) hasFallbackWorker(i int) bool {
	name := d.step(i).Fallback
	_, isStep := d.index[name]
	return name != "" && !isStep
}

// name returns the name of a step; empty for [machine.None].
func (d *definition) name(i int) string {
	if i == machine.None {
		return ""
	}
	return d.step(i).Name
}

// cachedSteps bounds the total steps of prepared definitions without a name.
const cachedSteps = 100_000

// definitions are the named definitions, and the most recently used ones.
type definitions struct {
	mu sync.Mutex // protects everything below
	Definitions
	generation int64                    // how often the named ones were defined
	ready      map[string]*list.Element // of *definition, by hash
	order      *list.List               // most recently used first
	steps      int                      // total of those in order
}

func (ds *definitions) init() {
	ds.ready, ds.order = map[string]*list.Element{}, list.New()
}

// Definitions are consistent definitions without faults.
type Definitions struct {
	named   map[string]*definition
	byHash  map[string]*definition // the same ones
	workers map[string]plan.Worker
	nesting int
}

// Compile checks definitions, against workers and each other; nesting is the maximum depth. The error
// joins the faults of all.
func Compile(all []jobhost.Workflow, workers map[string]plan.Worker, nesting int) (Definitions, error) {
	others := make(map[string]*jobhost.Workflow, len(all))
	for i := range all {
		others[all[i].Name] = &all[i]
	}
	named, byHash := make(map[string]*definition, len(all)), make(map[string]*definition, len(all))
	var errs []error
	for i := range all {
		p, err := plan.Compile(all[i], plan.Env{Workers: workers, Workflows: others, MaxNesting: nesting})
		if err == nil {
			named[all[i].Name], err = newDefinition(p, p.Hash)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("workflow %s: %w", all[i].Name, err))
			continue
		}
		byHash[p.Hash] = named[all[i].Name]
	}
	return Definitions{named, byHash, workers, nesting}, errors.Join(errs...)
}

func (ds *definitions) define(d Definitions) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for _, old := range ds.named { // workflows may still be running it
		ds.keepLocked(old)
	}
	ds.Definitions = d
	ds.generation++
}

// env returns what a definition can refer to now; the number changes with it.
func (ds *definitions) env() (env func() plan.Env, generation int64) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d := ds.Definitions // its contents don't change
	return func() plan.Env {
		e := plan.Env{Workers: d.workers, MaxNesting: d.nesting, Workflows: make(map[string]*jobhost.Workflow, len(d.named))}
		for name, def := range d.named {
			e.Workflows[name] = &def.Workflow
		}
		return e
	}, ds.generation
}

// byName returns the definition with a name; nil = none.
func (ds *definitions) byName(name string) *definition {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.named[name]
}

// all returns the named ones, sorted by name.
func (ds *definitions) all() []jobhost.Workflow {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	list := make([]jobhost.Workflow, 0, len(ds.named))
	for _, d := range ds.named {
		list = append(list, d.Workflow)
	}
	slices.SortFunc(list, func(a, b jobhost.Workflow) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// missing is the error for a name without a definition.
func (ds *definitions) missing(name string) *jobhost.Error {
	ds.mu.Lock()
	names := slices.Sorted(maps.Keys(ds.named))
	ds.mu.Unlock()
	e := &jobhost.Error{Code: jobhost.CodeNotFound, Field: "workflow", Message: fmt.Sprintf("there is no workflow %q", name)}
	switch near := text.Nearest(name, names); {
	case near != "":
		e.Hint = "did you mean " + near + "?"
	case len(names) == 0:
		e.Hint = "the manifest of this host has no section [workflow.NAME]; send the definition along"
	default:
		e.Hint = "this host has: " + strings.Join(names[:min(len(names), 20)], ", ")
	}
	return e
}

// cached returns the definition with a hash; nil = it must be compiled.
func (ds *definitions) cached(hash string) *definition {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if d := ds.byHash[hash]; d != nil {
		return d
	}
	at := ds.ready[hash]
	if at == nil {
		return nil
	}
	ds.order.MoveToFront(at)
	return at.Value.(*definition)
}

// compile prepares a definition from its text. Its references are not checked: that was done at the
// start, and they may be gone.
func (ds *definitions) compile(hash string, text []byte) (*definition, error) {
	if d := ds.cached(hash); d != nil {
		return d, nil
	}
	if text == nil {
		return nil, errors.New("its definition is gone")
	}
	var w jobhost.Workflow
	if err := json.Unmarshal(text, &w); err != nil {
		return nil, fmt.Errorf("read its definition: %w", err)
	}
	p, err := plan.Compile(w, plan.Env{})
	if err != nil {
		return nil, fmt.Errorf("its definition can't be used any more: %w", err)
	}
	d, err := newDefinition(p, hash)
	if err != nil {
		return nil, err
	}
	ds.keep(d)
	return d, nil
}

func (ds *definitions) keep(d *definition) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.keepLocked(d)
}

func (ds *definitions) keepLocked(d *definition) {
	if ds.ready[d.hash] != nil {
		return
	}
	ds.ready[d.hash] = ds.order.PushFront(d)
	ds.steps += len(d.Steps)
	for ds.steps > cachedSteps && ds.order.Len() > 1 {
		last := ds.order.Remove(ds.order.Back()).(*definition)
		delete(ds.ready, last.hash)
		ds.steps -= len(last.Steps)
	}
}
