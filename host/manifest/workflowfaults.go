package manifest

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/plan"
	"github.com/jobhost/jobhost/internal/text"
)

// compile reports what is wrong with the workflows as graphs, each with the others
// and the workers at hand.
func (r *reader) compile(texts []*workflowText, m *Manifest) {
	env := plan.Env{Workers: map[string]plan.Worker{}, Workflows: map[string]*jobhost.Workflow{}, MaxNesting: m.WorkflowSettings.MaxNesting}
	for i := range m.Workers {
		env.Workers[m.Workers[i].Name] = plan.Worker{} // what its entries are shows when it is loaded
	}
	for _, t := range texts {
		env.Workflows[t.Name] = &t.Workflow
	}
	for _, t := range texts {
		if t.unread {
			continue
		}
		if _, err := plan.Compile(t.Workflow, env); err != nil {
			r.workflowFaults(t, err)
		}
	}
}

// workflowFaults reports errors whose fields are settings of a workflow.
func (r *reader) workflowFaults(t *workflowText, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the tree is walked by hand
		for _, one := range joined.Unwrap() {
			r.workflowFaults(t, one)
		}
		return
	}
	e, ok := errors.AsType[*jobhost.Error](err)
	if !ok {
		e = &jobhost.Error{Message: text.Line(err.Error(), 300)}
	}
	step, below := splitField(e.Field)
	if t.faulty[step] {
		return // faults that follow from it would be reported too
	}
	path := []string{"workflow", t.Name}
	if step != "" {
		path = append(path, "step", step)
	}
	p, ok := t.positions.find(slices.Concat(path, below))
	f := &Fault{File: t.file, Key: keyText(path), Message: e.Message, Hint: e.Hint}
	if t.positions == r.positions {
		f.Message = stepNumber.ReplaceAllStringFunc(f.Message, func(s string) string {
			n, _ := strconv.Atoi(stepNumber.FindStringSubmatch(s)[1])
			return "step " + element(n+1) // as paths have it
		})
	}
	switch {
	case t.positions != r.positions && e.Field != "": // as the file has it
		f.Key = keyText(path[:2]) + "." + e.Field
	case len(below) > 0:
		f.Key = keyText(slices.Concat(path, below))
	}
	if ok {
		f.Line, f.Column = t.positions.lineColumn(p.value)
	}
	r.faults = append(r.faults, f)
}

// stepNumber is how a fault calls a step without a name of its own.
var stepNumber = regexp.MustCompile(`steps\[([0-9]+)\]`)

var stepField = regexp.MustCompile(`^steps(?:\.([A-Za-z0-9][A-Za-z0-9_-]*)|\[([0-9]+)\])?(?:\.|$)`)

// splitField returns what paths call the step that a field of a definition is of,
// "" = none, and the setting below it: steps.NAME.retry.max, steps[3].name, output.
func splitField(field string) (step string, below []string) {
	split := func(r rune) bool { return strings.ContainsRune(".[]", r) }
	m := stepField.FindStringSubmatch(field)
	if m == nil {
		return "", strings.FieldsFunc(field, split)
	}
	if n, err := strconv.Atoi(m[2]); err == nil {
		m[1] = element(n + 1)
	}
	if m[1] == "" {
		return "", []string{"step"}
	}
	return m[1], strings.FieldsFunc(field[len(m[0]):], split)
}
