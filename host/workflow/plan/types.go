package plan

import (
	"encoding/json"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/schema"
	"github.com/jobhost/jobhost/internal/text"
)

// parseSchemas parses all schemas, identical ones only once.
func (c *compiler) parseSchemas() {
	n := len(c.w.Steps)
	c.inputSchema, c.outputSchema = make([]*schema.Schema, n), make([]*schema.Schema, n)
	c.wholeInput = c.schema("input_schema", c.w.InputSchema)
	c.wholeOutput = c.schema("output_schema", c.w.OutputSchema)
	for i := range c.w.Steps {
		s := &c.w.Steps[i]
		c.inputSchema[i] = c.schema(c.fields[i]+".input_schema", s.InputSchema)
		c.outputSchema[i] = c.schema(c.fields[i]+".output_schema", s.OutputSchema)
		sub := c.env.Workflows[s.Workflow]
		if sub == nil || s.Workflow == "" {
			continue
		}
		if c.inputSchema[i] == nil { // its faults belong to the other workflow
			c.inputSchema[i], _ = c.parse(sub.InputSchema)
		}
		if c.outputSchema[i] == nil {
			c.outputSchema[i], _ = c.parse(sub.OutputSchema)
		}
	}
}

func (c *compiler) schema(field string, text json.RawMessage) *schema.Schema {
	s, err := c.parse(text)
	c.faults.addAll(field, err, false)
	return s
}

func (c *compiler) parse(text json.RawMessage) (*schema.Schema, error) {
	if len(text) == 0 {
		return nil, nil
	}
	if s, ok := c.schemas[string(text)]; ok {
		return s, nil
	}
	s, err := schema.Parse(text)
	if err == nil {
		c.schemas[string(text)] = s
	}
	return s, err
}

// many reports whether the output of a step is a list of its tasks' results.
func many(s *jobhost.Step) bool { return s.FanOut != "" || s.Tasks > 1 }

// returns returns the schema of a step's output; nil = anything.
func (c *compiler) returns(i int) *schema.Schema {
	if many(&c.w.Steps[i]) {
		return schema.Array(c.outputSchema[i])
	}
	return c.outputSchema[i]
}

// checkFit compares the schemas of data that is passed on unchanged: the output of
// one step that is the input of the next, the input of the workflow, and its output.
func (c *compiler) checkFit() {
	for i := range c.w.Steps {
		from, what := c.passedTo(i)
		if why := schema.Mismatch(from, c.inputSchema[i]); why != "" {
			c.faults.add(c.fields[i]+".input_schema", "make the schemas agree, or select what fits with input", "%s does not fit: %s", what, why)
		}
	}
	if last := c.outputStep(); last >= 0 && c.w.Output == "" {
		if why := schema.Mismatch(c.returns(last), c.wholeOutput); why != "" {
			c.faults.add("output_schema", "make the schemas agree, or select what fits with output",
				"the output of step %s does not fit: %s", text.Quote(c.w.Steps[last].Name, text.Short), why)
		}
	}
}

// passedTo returns the schema of a step's unchanged input, and what that input is.
func (c *compiler) passedTo(i int) (*schema.Schema, string) {
	s := &c.w.Steps[i]
	source := i
	for range len(c.w.Steps) { // a fallback gets the input of the step that it replaces
		if s.Input != "" || s.FanOut != "" || c.fallbackOf[source] < 0 {
			break
		}
		source = c.fallbackOf[source]
		s = &c.w.Steps[source]
	}
	p := c.programs[source]
	switch {
	case s.FanOut != "" && (s.Input == "" || p.input != nil && p.input.Passes().Root == "item"):
		if p.fanOut == nil {
			return nil, ""
		}
		from, what := c.passes(p.fanOut.Passes().Root, p.fanOut.Passes().Step)
		return schema.Element(from), "each element of " + what
	case s.Input != "":
		if p.input == nil {
			return nil, ""
		}
		return c.passes(p.input.Passes().Root, p.input.Passes().Step)
	case len(s.Needs) == 0:
		return c.passes("input", "")
	case len(s.Needs) == 1:
		return c.passes("steps", s.Needs[0])
	}
	return nil, ""
}

func (c *compiler) passes(root, step string) (*schema.Schema, string) {
	switch root {
	case "input":
		return c.wholeInput, "the input of the workflow"
	case "steps":
		if j, ok := c.byName[step]; ok {
			return c.returns(j), "the output of step " + text.Quote(strings.ToValidUTF8(step, ""), text.Short)
		}
	}
	return nil, ""
}

// outputStep returns the step whose output is that of the workflow: the one marked
// as such, or the only last one; -1 = none.
func (c *compiler) outputStep() int {
	last := -1
	for i := range c.w.Steps {
		if c.w.Steps[i].Output {
			return i
		}
	}
	for i := range c.w.Steps {
		if len(c.next[i]) == 0 && c.fallbackOf[i] < 0 {
			if last >= 0 {
				return -1
			}
			last = i
		}
	}
	return last
}
