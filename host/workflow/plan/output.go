package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
)

// checkOutputs reports workflows that return two things.
func (c *compiler) checkOutputs() {
	first := -1
	for i := range c.w.Steps {
		switch {
		case !c.w.Steps[i].Output:
		case c.w.Output != "":
			c.faults.add(c.fields[i]+".output", "leave one of them out", "the workflow has an output of its own")
		case first >= 0:
			c.faults.add(c.fields[i]+".output", "", "%s is the output of the workflow already", clip(c.w.Steps[first].Name))
		default:
			first = i
		}
	}
}

// maxNesting is how deep workflows can be steps of workflows, as with jobs.
const maxNesting = jobhost.MaxDepth

// checkRecursion reports workflows that come to be a step of themselves, once
// for each, and those that are nested too deep.
func (c *compiler) checkRecursion() {
	r := recursion{c: c, state: map[string]int{}}
	r.visit(c.w.Name, c.w)
}

type recursion struct {
	c     *compiler
	path  []string
	state map[string]int // 1 = on the path, 2 = done
}

// visit follows the steps of a workflow that are workflows. Names have been
// checked, and definitions of others are not followed twice.
func (r *recursion) visit(name string, w *jobhost.Workflow) {
	r.state[name] = 1
	r.path = append(r.path, name)
	defer func() {
		r.state[name] = 2
		r.path = r.path[:len(r.path)-1]
	}()
	field := "steps"
	if len(r.path) > maxNesting {
		r.c.faults.add(field, "", "workflows are nested deeper than %d: %s", maxNesting, strings.Join(short(r.path), " → "))
		return
	}
	called := map[string]string{} // by name, the field of the first step
	for i := range w.Steps {
		if sub := w.Steps[i].Workflow; sub != "" && called[sub] == "" {
			called[sub] = "steps"
			if len(r.path) == 1 {
				called[sub] = r.c.fields[i] + ".workflow"
			}
		}
	}
	for _, sub := range slices.Sorted(maps.Keys(called)) {
		switch r.state[sub] {
		case 1:
			from := slices.Index(r.path, sub)
			circle := append(slices.Clone(r.path[from:]), sub)
			r.c.faults.add(called[sub], "", "the workflow is a step of itself: %s", strings.Join(short(circle), " → "))
		case 0:
			if next := r.c.env.Workflows[sub]; next != nil {
				r.visit(sub, next)
			}
		}
	}
}
