package plan

import (
	"slices"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/expr"
	"github.com/jobhost/jobhost/host/workflow/schema"
	"github.com/jobhost/jobhost/internal/text"
)

// compiler collects information about a workflow and its faults. Steps are
// identified by their index in the definition here.
type compiler struct {
	w      *jobhost.Workflow
	env    Env
	faults faults

	byName map[string]int
	names  []string // of the steps, without duplicates
	fields []string // of the steps, for faults

	needs, next    [][]int32
	fallback       []int // step, or -1
	fallbackOf     []int
	fallbackWorker []string
	order          []int32 // topological; nil = there is none
	level          []int
	above          []set // computed on demand

	schemas                   map[string]*schema.Schema // by text
	inputSchema, outputSchema []*schema.Schema          // of steps
	wholeInput, wholeOutput   *schema.Schema

	programs []programs
	output   *expr.Program
}

type programs struct{ when, input, fanOut, terminate *expr.Program }

// checkSize reports whether the workflow is small enough to be checked further.
func (c *compiler) checkSize() bool {
	n, needs := len(c.w.Steps), 0
	for i := range c.w.Steps {
		needs += len(c.w.Steps[i].Needs)
	}
	switch {
	case n == 0:
		c.faults.add("steps", "", "the workflow has no steps")
	case n > jobhost.MaxSteps:
		c.faults.put(&jobhost.Error{
			Code: jobhost.CodeTooLarge, Field: "steps", Message: strconv.Itoa(n) + " steps are more than " + strconv.Itoa(jobhost.MaxSteps),
			Hint: "use fan_out for what is the same, or make parts workflows of their own",
		})
	case needs > jobhost.MaxNeeds:
		c.faults.put(&jobhost.Error{
			Code: jobhost.CodeTooLarge, Field: "steps", Message: strconv.Itoa(needs) + " needs are more than " + strconv.Itoa(jobhost.MaxNeeds),
			Hint: "let one step collect what many others need",
		})
	}
	return n <= jobhost.MaxSteps && needs <= jobhost.MaxNeeds
}

func (c *compiler) checkWorkflow() {
	w := c.w
	c.faults.addAll("name", jobhost.CheckWorkflow(w.Name), false)
	c.checkDescription("description", w.Description)
	spec := jobhost.Spec{Worker: "x", Priority: w.Priority, Labels: w.Labels}
	c.addBelow("", spec.Check())
	if w.Timeout < 0 || time.Duration(w.Timeout) > jobhost.MaxDelay {
		c.faults.add("timeout", "", "timeout %v is not between 0s and %v", w.Timeout, jobhost.Duration(jobhost.MaxDelay))
	}
	if w.MaxParallel < 0 {
		c.faults.add("max_parallel", "", "max_parallel %d is less than 0", w.MaxParallel)
	}
}

// addBelow adds errors whose fields are settings of a step, or of the workflow.
func (c *compiler) addBelow(prefix string, err error) {
	before := len(c.faults.list)
	c.faults.addAll(prefix, err, true)
	if prefix != "" {
		return
	}
	for _, e := range c.faults.list[before:] {
		if e, ok := e.(*jobhost.Error); ok && e.Field != "" && e.Field[0] == '.' { //nolint:errorlint // just put there
			e.Field = e.Field[1:]
		}
	}
}

func (c *compiler) checkDescription(field, text string) {
	if len(text) > jobhost.MaxDescription {
		c.faults.add(field, "", "a description of %d bytes is longer than %d", len(text), jobhost.MaxDescription)
	}
}

// nameSteps checks the names, and creates the field names that faults use for
// steps.
func (c *compiler) nameSteps() {
	c.fields = make([]string, len(c.w.Steps))
	for i := range c.w.Steps {
		name := c.w.Steps[i].Name
		c.fields[i] = "steps." + name
		place := "steps[" + strconv.Itoa(i) + "]"
		if err := jobhost.CheckStep(name); err != nil {
			c.fields[i] = place
			c.faults.addAll(place+".name", err, false)
			if name == "" {
				continue
			}
		}
		if first, ok := c.byName[name]; ok {
			c.fields[i] = place
			c.faults.add(place+".name", "", "%s is the name of steps[%d] already", text.Quote(name, text.Short), first)
			continue
		}
		c.byName[name] = i
		c.names = append(c.names, name)
	}
	slices.Sort(c.names)
}

// didYouMean returns the hint for an unknown name.
func didYouMean(name string, names []string) string {
	if near := text.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}
