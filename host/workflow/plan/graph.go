package plan

import (
	"container/heap"
	"slices"
	"strings"

	"github.com/jobhost/jobhost/internal/text"
)

// connect finds the steps that each step needs.
func (c *compiler) connect() {
	n := len(c.w.Steps)
	c.needs, c.next = make([][]int32, n), make([][]int32, n)
	seen := make([]int32, n) // the last step that needs this one, plus 1, to find duplicates
	for i := range c.w.Steps {
		field := c.fields[i] + ".needs"
		for _, name := range c.w.Steps[i].Needs {
			j, ok := c.byName[name]
			switch {
			case !ok:
				c.faults.add(field, didYouMean(name, c.names), "there is no step %s", text.Quote(name, text.Short))
			case j == i:
				c.faults.add(field, "", "the step needs itself")
			case seen[j] == int32(i+1):
				c.faults.add(field, "name it once", "%s is there twice", text.Quote(name, text.Short))
			default:
				seen[j] = int32(i + 1)
				c.needs[i] = append(c.needs[i], int32(j))
				c.next[j] = append(c.next[j], int32(i))
			}
		}
	}
}

// checkFallbacks resolves fallbacks, and reports settings that a fallback can't have.
func (c *compiler) checkFallbacks() {
	n := len(c.w.Steps)
	c.fallback, c.fallbackOf, c.fallbackWorker = slices.Repeat([]int{-1}, n), slices.Repeat([]int{-1}, n), make([]string, n)
	for i := range c.w.Steps {
		name := c.w.Steps[i].Fallback
		if name == "" {
			continue
		}
		j, ok := c.byName[name]
		field := c.fields[i] + ".fallback"
		switch {
		case !ok:
			c.checkFallbackWorker(i, name, field)
		case j == i:
			c.faults.add(field, "", "the step is its own fallback")
		case c.fallbackOf[j] >= 0:
			c.faults.add(field, "make a step of its own for each", "%s is the fallback of %s already", text.Quote(name, text.Short), text.Quote(c.w.Steps[c.fallbackOf[j]].Name, text.Short))
		default:
			c.fallback[i], c.fallbackOf[j] = j, i
		}
	}
	for i, owner := range c.fallbackOf {
		if owner >= 0 {
			c.checkFallback(i, owner)
		}
	}
	c.checkFallbackCycles()
	c.checkFallbackInputs()
}

// checkFallbackInputs reports fallbacks that would get the input of the step they
// replace, but can't: there is a payload for each element of a list.
func (c *compiler) checkFallbackInputs() {
	for i := range c.w.Steps {
		s, owner := &c.w.Steps[i], c.fallbackOf[i]
		if owner < 0 || s.Input != "" || s.FanOut != "" || s.Workflow == "" && s.Tasks <= 1 {
			continue
		}
		for c.w.Steps[owner].Input == "" && c.w.Steps[owner].FanOut == "" && c.fallbackOf[owner] >= 0 {
			owner = c.fallbackOf[owner]
		}
		if of := &c.w.Steps[owner]; of.FanOut != "" {
			c.faults.add(c.fields[i]+".input", "say what it gets with input", "the step stands in for %s, which has a payload for each element", text.Quote(of.Name, text.Short))
		}
	}
}

// checkFallbackWorker looks up a fallback that is not a step.
func (c *compiler) checkFallbackWorker(i int, name, field string) {
	if _, ok := c.env.Workers[name]; !ok && c.env.Workers != nil {
		names := slices.Clone(c.names)
		for worker := range c.env.Workers {
			names = append(names, worker)
		}
		slices.Sort(names)
		c.faults.add(field, didYouMean(name, names), "there is no step and no worker %s", text.Quote(name, text.Short))
		return
	}
	c.checkWorker(name, "", field, "")
	c.fallbackWorker[i] = name
}

// checkFallback reports settings that a fallback can't have.
func (c *compiler) checkFallback(i, owner int) {
	s, field, of := &c.w.Steps[i], c.fields[i], text.Quote(c.w.Steps[owner].Name, text.Short)
	if len(s.Needs) > 0 {
		c.faults.add(field+".needs", "it runs when that has failed", "the step is the fallback of %s and can't need others", of)
	}
	for j, next := range c.next[i] {
		if j == 3 {
			c.faults.add(field, "", "the step is the fallback of %s, and %d more need it", of, len(c.next[i])-j)
			break
		}
		c.faults.add(c.fields[next]+".needs", "need "+c.w.Steps[owner].Name+", which has the output of its fallback",
			"%s is the fallback of %s and runs for nothing else", text.Quote(s.Name, text.Short), of)
	}
	for _, setting := range []struct {
		name string
		set  bool
	}{{"output", s.Output}, {"terminate", s.Terminate != ""}, {"on_error", s.OnError != ""}} {
		if setting.set {
			c.faults.add(field+"."+setting.name, "say it there", "%s is not possible for the fallback of %s", setting.name, of)
		}
	}
}

// checkFallbackCycles finds cycles of fallbacks: each step has at most one fallback and
// is that of at most one, so a cycle returns to a step of the path.
func (c *compiler) checkFallbackCycles() {
	done := make([]bool, len(c.fallback))
	for i := range c.fallback {
		path := []string{}
		j := i
		for j >= 0 && !done[j] {
			done[j] = true
			path = append(path, c.w.Steps[j].Name)
			j = c.fallback[j]
		}
		if j == i && len(path) > 1 {
			c.faults.add(c.fields[i]+".fallback", "", "fallbacks go in a circle: %s", strings.Join(short(append(path, path[0])), " → "))
			c.fallbackOf[c.fallback[i]], c.fallback[i] = -1, -1 // broken up, so that the rest can be checked
		}
	}
}

// sort finds an order in which each step comes after those it needs, and a fallback
// after the step it replaces; among the candidates the first of the definition comes
// next. If there are cycles, the order lacks some of the steps.
func (c *compiler) sort() {
	n := len(c.w.Steps)
	waits := make([]int, n)
	c.level = make([]int, n)
	var ready queue
	for i := range n {
		waits[i] = len(c.needs[i])
		if c.fallbackOf[i] >= 0 {
			waits[i]++
		}
		if waits[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	release := func(from, to int) {
		c.level[to] = max(c.level[to], c.level[from]+1)
		if waits[to]--; waits[to] == 0 {
			heap.Push(&ready, int32(to))
		}
	}
	c.order = make([]int32, 0, n)
	for len(ready) > 0 {
		i := int(heap.Pop(&ready).(int32))
		c.order = append(c.order, int32(i))
		for _, next := range c.next[i] {
			release(i, int(next))
		}
		if f := c.fallback[i]; f >= 0 {
			release(i, f)
		}
	}
}

// queue is a heap of steps.
type queue []int32

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i] < q[j] }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push implements [heap.Interface].
func (q *queue) Push(x any) { *q = append(*q, x.(int32)) }

// Pop implements [heap.Interface].
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
