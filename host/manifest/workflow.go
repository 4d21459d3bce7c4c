package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
)

// WorkflowSettings is the section [workflows]: what holds for all workflows of the host.
type WorkflowSettings struct {
	// MaxOpen is how many may run at one time.
	MaxOpen int
	// MaxNesting is how deep workflows may be steps of workflows, the outermost counted.
	MaxNesting int
	// Retention is how long they are kept after their end.
	Retention jobhost.WorkflowRetention
}

// WorkflowPart names what a workflow reads from a file.
type WorkflowPart struct {
	Workflow string
	Step     string // empty = it is not part of a step
	Key      string // "file" of the whole definition, "input_schema" or "output_schema"
}

// workflowSection is a section [workflow.NAME] without its steps. Files are
// absolute; empty = there is none.
type workflowSection struct {
	jobhost.Workflow

	file, inputFile, outputFile string
}

// stepSection is a section [[workflow.NAME.step]].
type stepSection struct {
	jobhost.Step

	inputFile, outputFile string
}

// workflowText is a workflow as it was read, with what its faults need.
type workflowText struct {
	jobhost.Workflow

	// file and positions say where it stands: in the manifest, or a file of its own.
	file      string
	positions *positions
	// faulty are the steps, by what they are called in paths, and "" for the
	// workflow itself, that have faults already.
	faulty map[string]bool
	// unread says that nothing is known but the name.
	unread bool
}

func defaultWorkflowSettings() WorkflowSettings {
	return WorkflowSettings{MaxOpen: 100_000, MaxNesting: 16, Retention: jobhost.DefaultWorkflowRetention()}
}

// workflows reads the sections [workflows] and [workflow.NAME].
func (r *reader) workflows(doc map[string]any, m *Manifest) {
	m.WorkflowSettings = defaultWorkflowSettings()
	path := []string{"workflows"}
	if table, ok := r.table(doc, nil, "workflows"); ok {
		fill(r, path, table, workflowsFields(), &m.WorkflowSettings, "retention")
		if kept, ok := r.table(table, path, "retention"); ok {
			fill(r, at(path, "retention"), kept, workflowRetentionFields(), &m.WorkflowSettings.Retention)
		}
	}
	tables, _ := r.table(doc, nil, "workflow")
	if len(tables) > MaxWorkflows {
		r.faultKey([]string{"workflow"}, nil, fmt.Sprintf("%d workflows are more than %d", len(tables), MaxWorkflows), "")
		return
	}
	r.nameSteps(tables)
	var texts []*workflowText
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if table, ok := r.table(tables, []string{"workflow"}, name); ok {
			texts = append(texts, r.workflow(name, table, m))
		}
	}
	r.compile(texts, m)
	for _, t := range texts {
		m.Workflows = append(m.Workflows, t.Workflow)
	}
}

// nameSteps lets the places of steps be found by the names of steps. Those without
// a name of their own keep their numbers.
func (r *reader) nameSteps(workflows map[string]any) {
	all := map[string][]string{}
	for workflow, v := range workflows {
		table, _ := v.(map[string]any)
		steps, _ := table["step"].([]map[string]any)
		names := make([]string, len(steps))
		for i, step := range steps {
			names[i], _ = step["name"].(string)
		}
		all[pathKey([]string{"workflow", workflow, "step"})] = ownNames(names)
	}
	r.positions.rename(all)
}

// ownNames empties the names of steps that are none, or another's before.
func ownNames(names []string) []string {
	seen := map[string]bool{}
	for i, name := range names {
		if jobhost.CheckStep(name) != nil || seen[name] {
			names[i] = ""
		}
		seen[name] = true
	}
	return names
}

func (r *reader) workflow(name string, table map[string]any, m *Manifest) *workflowText {
	path := []string{"workflow", name}
	t := &workflowText{file: r.file, positions: r.positions, faulty: map[string]bool{}}
	t.Name = name
	if _, given := table["file"]; given {
		r.workflowFile(path, table, t, m)
		return t
	}
	s := workflowSection{Workflow: t.Workflow}
	before := len(r.faults)
	fill(r, path, table, workflowFields(), &s, "labels", "step")
	if labels, ok := r.table(table, path, "labels"); ok {
		s.Labels = orNil(r.labels(at(path, "labels"), labels, jobhost.MaxLabels))
	}
	steps, ok := table["step"].([]map[string]any)
	if _, given := table["step"]; given && !ok {
		r.faultKey(at(path, "step"), at(path, "step"), "this is not a list of steps", "each step is a section of its own: [["+keyText(at(path, "step"))+"]]")
	}
	t.faulty[""] = len(r.faults) > before
	m.readFrom(WorkflowPart{name, "", "input_schema"}, s.inputFile)
	m.readFrom(WorkflowPart{name, "", "output_schema"}, s.outputFile)
	t.Workflow = s.Workflow
	r.steps(path, steps, t, m)
	return t
}

func (r *reader) steps(path []string, tables []map[string]any, t *workflowText, m *Manifest) {
	names := make([]string, len(tables))
	for i, table := range tables {
		names[i], _ = table["name"].(string)
	}
	for i, name := range ownNames(names) {
		if name == "" {
			name = element(i + 1)
		}
		before := len(r.faults)
		s := r.step(append(slices.Clone(path), "step", name), tables[i])
		t.faulty[name] = len(r.faults) > before
		t.Steps = append(t.Steps, s.Step)
		m.readFrom(WorkflowPart{t.Name, name, "input_schema"}, s.inputFile)
		m.readFrom(WorkflowPart{t.Name, name, "output_schema"}, s.outputFile)
	}
}

// step reads a step. What it says together, and in its workflow, is for compile to judge.
func (r *reader) step(path []string, table map[string]any) stepSection {
	var s stepSection
	fill(r, path, table, stepFields(), &s, "labels", "retry", "breaker")
	if labels, ok := r.table(table, path, "labels"); ok {
		s.Labels = orNil(r.labels(at(path, "labels"), labels, jobhost.MaxLabels))
	}
	if retry, ok := r.table(table, path, "retry"); ok {
		s.Retry = new(jobhost.StepRetry)
		fill(r, at(path, "retry"), retry, stepRetryFields(), s.Retry)
	}
	if breaker, ok := r.table(table, path, "breaker"); ok {
		s.Breaker = new(jobhost.StepBreaker)
		fill(r, at(path, "breaker"), breaker, stepBreakerFields(), s.Breaker)
	}
	return s
}

// orNil returns nil for no labels: as definitions have it that say nothing of them.
func orNil(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	return labels
}

// readFrom notes that a part of a workflow stands in a file, if it does.
func (m *Manifest) readFrom(part WorkflowPart, file string) {
	if file == "" {
		return
	}
	if m.WorkflowFiles == nil {
		m.WorkflowFiles = map[WorkflowPart]string{}
	}
	m.WorkflowFiles[part] = file
}

func (m *Manifest) showWorkflows(b *strings.Builder) {
	b.WriteString("\n[workflows]\n")
	showFields(b, m.Dir, workflowsFields(), &m.WorkflowSettings)
	b.WriteString("\n[workflows.retention]\n")
	showFields(b, m.Dir, workflowRetentionFields(), &m.WorkflowSettings.Retention)
	for i := range m.Workflows {
		m.showWorkflow(b, &m.Workflows[i])
	}
}

func (m *Manifest) showWorkflow(b *strings.Builder, w *jobhost.Workflow) {
	section := "workflow." + showKey(w.Name)
	fmt.Fprintf(b, "\n[%s]\n", section)
	from := func(step, key string) string { return m.WorkflowFiles[WorkflowPart{w.Name, step, key}] }
	if file := from("", "file"); file != "" {
		fmt.Fprintf(b, "file = %s\n", quote(showPath(m.Dir, file)))
		return
	}
	showFields(b, m.Dir, workflowFields(), &workflowSection{
		Workflow: *w, inputFile: from("", "input_schema"), outputFile: from("", "output_schema"),
	})
	showLabels(b, section, w.Labels)
	section += ".step"
	for i := range w.Steps {
		s := &w.Steps[i]
		fmt.Fprintf(b, "\n[[%s]]\n", section)
		showFields(b, m.Dir, stepFields(), &stepSection{
			Step: *s, inputFile: from(s.Name, "input_schema"), outputFile: from(s.Name, "output_schema"),
		})
		showLabels(b, section, s.Labels)
		if s.Retry != nil {
			fmt.Fprintf(b, "\n[%s.retry]\n", section)
			showFields(b, m.Dir, stepRetryFields(), s.Retry)
		}
		if s.Breaker != nil {
			fmt.Fprintf(b, "\n[%s.breaker]\n", section)
			showFields(b, m.Dir, stepBreakerFields(), s.Breaker)
		}
	}
}

func showLabels(b *strings.Builder, section string, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	fmt.Fprintf(b, "\n[%s.labels]\n", section)
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(b, "%s = %s\n", showKey(name), quote(labels[name]))
	}
}
