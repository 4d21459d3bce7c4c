package plan

import (
	"fmt"
	"slices"
	"strings"
)

// checkGraph sorts the steps, and reports why that isn't possible.
func (c *compiler) checkGraph() {
	c.sort()
	if len(c.order) == len(c.w.Steps) {
		return
	}
	sorted := make([]bool, len(c.w.Steps))
	for _, i := range c.order {
		sorted[i] = true
	}
	inCycle := make([]bool, len(c.w.Steps))
	for _, group := range c.circles() {
		for _, i := range group {
			inCycle[i] = true
		}
		path := c.shortest(group)
		names := make([]string, 0, len(path)+1)
		for _, i := range path {
			names = append(names, c.w.Steps[i].Name)
		}
		names = append(names, names[0])
		c.faults.add(c.fields[path[0]]+".needs", "leave one of these needs out", "steps go in a circle: %s", strings.Join(short(names), " → "))
	}
	var behind []string
	for i := range c.w.Steps {
		if !sorted[i] && !inCycle[i] {
			behind = append(behind, c.w.Steps[i].Name)
		}
	}
	if len(behind) > 0 {
		c.faults.add("steps", "", "%s can't be reached behind a circle", listed(behind))
	}
	if len(c.order) == 0 {
		c.faults.add("steps", "a step without needs is where it starts", "no step can start: each needs another")
	}
	if !slices.ContainsFunc(c.next, func(next []int32) bool { return len(next) == 0 }) {
		c.faults.add("steps", "a step that none needs is where it ends", "there is no last step: each is needed by another")
	}
	c.order = nil
}

// short leaves out the middle of a long path.
func short(names []string) []string {
	const most = 12
	if len(names) <= most {
		return names
	}
	middle := fmt.Sprintf("… (%d more) …", len(names)-most+2)
	return slices.Concat(names[:most/2], []string{middle}, names[len(names)-most/2+2:])
}

func listed(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return and(names)
}

// circles returns the groups of more than one step that can reach each other (Tarjan's
// strongly connected components, without recursion, since a chain of steps can be
// long). Each group is sorted, and so are the groups.
func (c *compiler) circles() [][]int32 {
	n := len(c.w.Steps)
	t := tarjan{next: c.next, index: make([]int32, n), low: make([]int32, n), onStack: make([]bool, n)}
	for i := range n {
		if t.index[i] == 0 {
			t.visit(int32(i))
		}
	}
	slices.SortFunc(t.groups, func(a, b []int32) int { return int(a[0] - b[0]) })
	return t.groups
}

type tarjan struct {
	next       [][]int32
	index, low []int32 // index 0 = not yet visited
	onStack    []bool
	stack      []int32
	last       int32
	groups     [][]int32
}

// visit explores from a step. frames is the path, with the number of edges followed at
// each step.
func (t *tarjan) visit(start int32) {
	type frame struct {
		step int32
		edge int
	}
	frames := []frame{{step: start}}
	t.enter(start)
	for len(frames) > 0 {
		f := &frames[len(frames)-1]
		if f.edge < len(t.next[f.step]) {
			to := t.next[f.step][f.edge]
			f.edge++
			if t.index[to] == 0 {
				t.enter(to)
				frames = append(frames, frame{step: to})
			} else if t.onStack[to] {
				t.low[f.step] = min(t.low[f.step], t.index[to])
			}
			continue
		}
		done := f.step
		frames = frames[:len(frames)-1]
		if len(frames) > 0 {
			above := frames[len(frames)-1].step
			t.low[above] = min(t.low[above], t.low[done])
		}
		if t.low[done] == t.index[done] {
			t.take(done)
		}
	}
}

func (t *tarjan) enter(step int32) {
	t.last++
	t.index[step], t.low[step] = t.last, t.last
	t.stack, t.onStack[step] = append(t.stack, step), true
}

// take completes the group that began with a step.
func (t *tarjan) take(first int32) {
	at := slices.Index(t.stack, first)
	group := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, i := range group {
		t.onStack[i] = false
	}
	if len(group) > 1 {
		slices.Sort(group)
		t.groups = append(t.groups, group)
	}
}

// shortest returns the shortest path within a group from its first step back to it.
func (c *compiler) shortest(group []int32) []int32 {
	start := group[0]
	in := make(map[int32]bool, len(group))
	for _, i := range group {
		in[i] = true
	}
	from := map[int32]int32{start: start}
	for queue := []int32{start}; len(queue) > 0; queue = queue[1:] {
		i := queue[0]
		for _, to := range c.next[i] {
			if to == start {
				path := []int32{i}
				for i != start {
					i = from[i]
					path = append(path, i)
				}
				slices.Reverse(path)
				return path
			}
			if _, seen := from[to]; !seen && in[to] {
				from[to] = i
				queue = append(queue, to)
			}
		}
	}
	return group
}
