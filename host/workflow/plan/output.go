package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// checkOutputs reports workflows with more than one output.
func (c *compiler) checkOutputs() {
	first := -1
	for i := range c.w.Steps {
		switch {
		case !c.w.Steps[i].Output:
		case c.w.Output != "":
			c.faults.add(c.fields[i]+".output", "leave one of them out", "the workflow has an output of its own")
		case first >= 0:
			c.faults.add(c.fields[i]+".output", "", "%s is the output of the workflow already", text.Quote(c.w.Steps[first].Name, text.Short))
		default:
			first = i
		}
	}
}

// checkRecursion reports if the workflow is, directly or indirectly, a step of
// itself, or workflows are nested too deep. Cycles of other workflows are their own
// faults.
func (c *compiler) checkRecursion() {
	r := recursion{c: c, height: map[string]int{}, tallest: map[string]string{}}
	height, most := r.visit(c.w.Name, c.w), cmp.Or(c.env.MaxNesting, jobhost.MaxDepth)
	if height <= most || r.circles {
		return
	}
	path := []string{c.w.Name}
	for name := r.tallest[c.w.Name]; name != ""; name = r.tallest[name] {
		path = append(path, name)
	}
	c.faults.add(c.firstOf(path[1]), "", "workflows are nested deeper than %d: %s", most, strings.Join(short(path), " → "))
}

// firstOf returns the field of the first step that runs a workflow.
func (c *compiler) firstOf(workflow string) string {
	i := slices.IndexFunc(c.w.Steps, func(s jobhost.Step) bool { return s.Workflow == workflow })
	return c.fields[i] + ".workflow"
}

type recursion struct {
	c       *compiler
	path    []string
	height  map[string]int    // levels of a workflow including itself; -1 = it is on the path
	tallest map[string]string // the workflow below with the most levels
	circles bool
}

// visit follows the steps of a workflow that are workflows, and returns the number of
// levels. Names have been checked, and each definition is followed only once.
func (r *recursion) visit(name string, w *jobhost.Workflow) int {
	r.height[name] = -1
	r.path = append(r.path, name)
	called := map[string]bool{}
	for i := range w.Steps {
		if sub := w.Steps[i].Workflow; sub != "" {
			called[sub] = true
		}
	}
	below := 0
	for _, sub := range slices.Sorted(maps.Keys(called)) {
		height := r.height[sub]
		switch next := r.c.env.Workflows[sub]; {
		case height < 0:
			r.circles = true
			if circle := append(slices.Clone(r.path), sub); sub == circle[0] {
				r.c.faults.add(r.c.firstOf(circle[1]), "", "the workflow is a step of itself: %s", strings.Join(short(circle), " → "))
			}
		case height > 0:
		case next == nil: // unknown, or not there
			height = 1
		default:
			height = r.visit(sub, next)
		}
		if height > below {
			below, r.tallest[name] = height, sub
		}
	}
	r.path = r.path[:len(r.path)-1]
	r.height[name] = below + 1
	return below + 1
}
