package plan

import (
	"slices"

	"github.com/jobhost/jobhost/host/workflow/expr"
)

// compileExpressions compiles all expressions. Its error is not a fault of the workflow.
func (c *compiler) compileExpressions() error {
	c.programs = make([]programs, len(c.w.Steps))
	known := make([]expr.Step, 0, len(c.w.Steps))
	needed := c.w.Output != ""
	for i := range c.w.Steps {
		s := &c.w.Steps[i]
		needed = needed || s.When != "" || s.Input != "" || s.FanOut != "" || s.Terminate != ""
		step := expr.Step{Name: s.Name, Output: s.OutputSchema, List: many(s)}
		if sub := c.env.Workflows[s.Workflow]; s.Workflow != "" && sub != nil && len(step.Output) == 0 {
			step.Output = sub.OutputSchema
		}
		if owner := c.fallbackOf[i]; owner >= 0 {
			step.Fallback = c.w.Steps[owner].Name
		}
		known = append(known, step)
	}
	if !needed {
		return nil // an environment is not free
	}
	env, err := expr.New(c.w.InputSchema, known)
	if err != nil {
		return err
	}
	for i := range c.w.Steps {
		s, p := &c.w.Steps[i], &c.programs[i]
		p.when = c.expression(env, i, expr.When, s.When, false)
		p.fanOut = c.expression(env, i, expr.FanOut, s.FanOut, false)
		p.input = c.expression(env, i, expr.Input, s.Input, c.hasItems(i))
		p.terminate = c.expression(env, i, expr.Terminate, s.Terminate, false)
	}
	if c.w.Output != "" {
		c.output, err = env.Compile(c.w.Output, expr.Place{Kind: expr.Output, Above: func(step string) bool {
			i, ok := c.byName[step]
			return ok && c.fallbackOf[i] < 0
		}})
		c.faults.addAll("output", err, false)
	}
	return nil
}

// hasItems reports whether the input of a step is evaluated for each element.
func (c *compiler) hasItems(i int) bool { return c.w.Steps[i].FanOut != "" }

func (c *compiler) expression(env *expr.Env, i int, kind expr.Kind, source string, item bool) *expr.Program {
	if source == "" {
		return nil
	}
	place := expr.Place{Kind: kind, Step: c.w.Steps[i].Name, Item: item}
	if len(c.order) == len(c.w.Steps) { // otherwise the order is unknown
		place.Above = func(step string) bool { return c.isAbove(i, step) }
	}
	p, err := env.Compile(source, place)
	c.faults.addAll(c.fields[i]+"."+kind.String(), err, false)
	return p
}

// isAbove reports whether a step has ended when another begins.
func (c *compiler) isAbove(i int, step string) bool {
	j, ok := c.byName[step]
	if !ok {
		return false
	}
	if slices.Contains(c.needs[i], int32(j)) || c.fallbackOf[i] == j {
		return true
	}
	if c.above == nil {
		c.above = c.closure()
	}
	return c.above[i].has(j)
}

// set is a set of steps, as bits.
type set []uint64

func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s set) join(other set) {
	for i, word := range other {
		s[i] |= word
	}
}

// closure returns for each step all that come before it: 12 MB for 10,000 steps, freed
// with the compiler.
func (c *compiler) closure() []set {
	words := (len(c.w.Steps) + 63) / 64
	all := make([]set, len(c.w.Steps))
	memory := make(set, words*len(all))
	for i := range all {
		all[i] = memory[i*words : (i+1)*words]
	}
	for _, i := range c.order {
		for _, need := range c.needs[i] {
			all[i].join(all[need])
			all[i].add(int(need))
		}
		if owner := c.fallbackOf[i]; owner >= 0 {
			all[i].join(all[owner])
			all[i].add(owner)
		}
	}
	return all
}

// plan makes the plan of a workflow without faults.
func (c *compiler) plan(hash string) *Plan {
	n := len(c.w.Steps)
	p := &Plan{
		Workflow: *c.w, Steps: make([]Step, n), Hash: hash, Output: c.output, OutputStep: -1,
		InputSchema: c.wholeInput, OutputSchema: c.wholeOutput, byName: make(map[string]int32, n),
	}
	at := make([]int32, n) // by index in the definition
	for index, i := range c.order {
		at[i] = int32(index)
	}
	place := func(list []int32) []int32 {
		for k, i := range list {
			list[k] = at[i]
		}
		slices.Sort(list)
		return list
	}
	where := func(i int) int {
		if i < 0 {
			return -1
		}
		return int(at[i])
	}
	for index, i := range c.order {
		last := len(c.next[i]) == 0 && c.fallbackOf[i] < 0
		p.Steps[index] = Step{
			Step: &p.Workflow.Steps[i], Index: index, Source: int(i), Level: c.level[i],
			Needs: place(c.needs[i]), Next: place(c.next[i]),
			Fallback: where(c.fallback[i]), FallbackOf: where(c.fallbackOf[i]), FallbackWorker: c.fallbackWorker[i],
			When: c.programs[i].when, Input: c.programs[i].input, FanOut: c.programs[i].fanOut, Terminate: c.programs[i].terminate,
			InputSchema: c.inputSchema[i], OutputSchema: c.outputSchema[i],
		}
		p.byName[c.w.Steps[i].Name] = int32(index)
		p.Levels = max(p.Levels, c.level[i]+1)
		if last {
			p.Last = append(p.Last, int32(index))
		}
	}
	if c.output == nil {
		p.OutputStep = where(c.outputStep())
	}
	return p
}
