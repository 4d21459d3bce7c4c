package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/workflow/draw"
	"github.com/jobhost/jobhost/host/workflow/plan"
	"github.com/jobhost/jobhost/internal/text"
)

// isDefinitionFile reports whether an argument is a file rather than the name of a definition.
func isDefinitionFile(arg string) bool {
	return arg == "-" || strings.ContainsAny(arg, `/\`) || slices.Contains([]string{".json", ".toml"}, filepath.Ext(arg))
}

// readDefinition reads a definition from a file, or from stdin.
func (e workflowEnv) readDefinition(name string) (jobhost.Workflow, error) {
	if filepath.Ext(name) == ".toml" {
		return jobhost.Workflow{}, &usageError{cause: &jobhost.Error{
			Code: jobhost.CodeInvalid, Message: "workflows of a manifest can't be read from " + name, Hint: "jobhost manifest check " + name + " checks them; here a host that has them is asked by NAME",
		}}
	}
	file := io.NopCloser(e.stdin)
	if name != "-" {
		f, err := os.Open(e.path(name))
		if err != nil {
			return jobhost.Workflow{}, &usageError{cause: fmt.Errorf("read the definition: %w", err)}
		}
		file = f
	}
	defer file.Close()
	// One byte more than allowed shows that there are more.
	text, err := io.ReadAll(io.LimitReader(file, jobhost.MaxWorkflowBytes+1))
	if err != nil {
		return jobhost.Workflow{}, fmt.Errorf("read the definition: %w", err)
	}
	w, err := plan.Decode(text)
	return w, inFile(name, err)
}

// inFile says of each fault where it is.
func inFile(name string, err error) error {
	if err == nil {
		return nil
	}
	if name == "-" {
		name = "stdin"
	}
	var all []error
	for _, one := range split(err) {
		where := name
		if fault, ok := errors.AsType[*jobhost.Error](one); ok && fault.Field != "" {
			where += ": " + fault.Field
		}
		all = append(all, fmt.Errorf("%s: %w", where, one))
	}
	return errors.Join(all...)
}

// definition returns the definition that is meant: of a file, or one of the host by its name.
func (e workflowEnv) definition(ctx context.Context, arg string) (jobhost.Workflow, error) {
	if isDefinitionFile(arg) {
		return e.readDefinition(arg)
	}
	if err := jobhost.CheckWorkflow(arg); err != nil {
		return jobhost.Workflow{}, asUsage(err)
	}
	server, err := e.server()
	if err != nil {
		return jobhost.Workflow{}, err
	}
	w, err := server.Definition(ctx, arg)
	if isUnreachable(err) {
		switch here, fault := e.manifestDefinition(arg); {
		case fault != nil:
			return w, errors.Join(err, fault)
		case here != nil:
			return *here, nil
		}
	}
	return w, e.suggestDefinition(ctx, server, arg, err)
}

// manifestDefinition returns the definition of that name in the manifest, for when no host runs; nil
// when there is none. Loading a manifest checks all definitions in it.
func (e *env) manifestDefinition(name string) (*jobhost.Workflow, error) {
	m, err := manifest.LoadUnbuilt(e.manifestPath())
	if err != nil {
		if errors.Is(err, &jobhost.Error{Code: jobhost.CodeNotFound}) {
			return nil, nil
		}
		return nil, err
	}
	i := slices.IndexFunc(m.Workflows, func(w jobhost.Workflow) bool { return w.Name == name })
	if i < 0 {
		return nil, nil
	}
	return &m.Workflows[i], nil
}

// isUnreachable reports whether no host answers where it was looked for.
func isUnreachable(err error) bool {
	fault, ok := errors.AsType[*jobhost.Error](err)
	return ok && fault.Code == jobhost.CodeUnavailable && fault.Field == jobhost.FieldURL
}

// suggestDefinition adds what may have been meant to the error of a name that isn't there.
func (e workflowEnv) suggestDefinition(ctx context.Context, server jobhost.Server, name string, err error) error {
	if jobhost.CodeOf(err) != jobhost.CodeNotFound {
		return err
	}
	hint := "jobhost workflow check FILE takes files, whose names end in .json or have a /"
	if _, statErr := os.Stat(e.path(name)); statErr == nil {
		hint = "the file of this name is ./" + name
	} else if list, listErr := server.Definitions(ctx); listErr == nil {
		var names []string
		for i := range list {
			names = append(names, list[i].Name)
		}
		if near := text.Nearest(name, names); near != "" {
			hint = "did you mean " + near + "?"
		} else if len(names) > 0 && len(names) <= 20 {
			hint = "there are " + strings.Join(names, ", ")
		}
	}
	return &jobhost.Error{Code: jobhost.CodeNotFound, Message: fmt.Sprintf("there is no workflow %q", name), Hint: hint}
}

func newWorkflowCheckCommand(e workflowEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE|NAME",
		Short: "Check a definition and report all errors",
		Long: `Check a definition and report all errors.

A FILE is JSON, - is stdin; it is checked without a server, so not whether its workers
exist. A NAME is a definition of the host, which checks it, or of
the manifest if no host answers.`,
		Example: `  jobhost workflow check order.json
  jobhost workflow check order -o json
  cat order.json | jobhost workflow check -`,
		Args:              exactly("FILE or NAME"),
		RunE:              func(cmd *cobra.Command, args []string) error { return e.check(cmd.Context(), args[0]) },
		ValidArgsFunction: completeDefinitions(e.env),
	}
}

// workflowReport is what workflow check says, as JSON.
type workflowReport struct {
	Source string           `json:"source"`
	OK     bool             `json:"ok"`
	Name   string           `json:"name,omitempty"`
	Steps  int              `json:"steps,omitempty"`
	Hash   string           `json:"hash,omitempty"`
	Faults []*jobhost.Error `json:"faults"`
}

func (e workflowEnv) check(ctx context.Context, arg string) error {
	w, err := e.definition(ctx, arg)
	if err != nil && !isDefinitionFile(arg) {
		return err
	}
	if err == nil {
		err = e.checkDefinition(ctx, arg, &w)
	}
	report := workflowReport{Source: arg, OK: err == nil, Name: w.Name, Steps: len(w.Steps), Faults: []*jobhost.Error{}}
	if err == nil {
		report.Hash, err = plan.Hash(&w)
	}
	if e.wantsJSON() {
		for _, one := range split(err) {
			if fault, ok := errors.AsType[*jobhost.Error](one); ok {
				report.Faults = append(report.Faults, fault)
			}
		}
		return errors.Join(e.json(report), err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "%s is fine: workflow %s, %s\n", printable(arg), printable(w.Name), plural(len(w.Steps), "step"))
	return err
}

// checkDefinition checks a definition: by itself if it is of a file, else with all that the host has.
func (e workflowEnv) checkDefinition(ctx context.Context, arg string, w *jobhost.Workflow) error {
	if isDefinitionFile(arg) {
		_, err := plan.Compile(*w, plan.Env{})
		return inFile(arg, err)
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	err = server.CheckWorkflow(ctx, *w)
	if isUnreachable(err) {
		if here, fault := e.manifestDefinition(arg); here != nil {
			return fault
		}
	}
	return inFile(arg, err)
}

func newWorkflowGraphCommand(e workflowEnv) *cobra.Command {
	format := choice{value: "ascii", names: []string{"ascii", "mermaid", "dot", "svg"}}
	cmd := &cobra.Command{
		Use:   "graph FILE|NAME|ID",
		Short: "Draw a definition, or a workflow as it stands",
		Long: `Draw a definition, or a workflow as it stands.

A FILE is JSON, - is stdin; a NAME is a definition of the host; an ID, which begins with
wf-, is a workflow that was started, of which each step is drawn with its status.`,
		Example: `  jobhost workflow graph order.json
  jobhost workflow graph order --format svg > order.svg
  jobhost workflow graph wf-order-17 --format mermaid`,
		Args: exactly("FILE, NAME or ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if e.wantsJSON() {
				return usagef("workflow graph writes drawings only; jobhost workflow show has JSON")
			}
			return e.graph(cmd.Context(), args[0], format.value)
		},
		ValidArgsFunction: completeDefinitions(e.env),
	}
	cmd.Flags().Var(&format, "format", "`FORMAT` of the drawing: ascii, mermaid, dot or svg")
	complete(cmd, "format", format.names...)
	return cmd
}

func (e workflowEnv) graph(ctx context.Context, arg, format string) error {
	var o draw.Options
	var w jobhost.Workflow
	var err error
	if !isDefinitionFile(arg) && strings.HasPrefix(arg, jobhost.WorkflowIDPrefix) {
		w, o.Status, err = e.liveDefinition(ctx, arg)
	} else {
		w, err = e.definition(ctx, arg)
	}
	if err != nil {
		return err
	}
	p, err := plan.Compile(w, plan.Env{})
	if err != nil {
		return inFile(arg, err)
	}
	if e.stdout.terminal {
		o.Width = e.columns()
	}
	paint := map[string]func(*plan.Plan, draw.Options) string{"ascii": draw.ASCII, "mermaid": draw.Mermaid, "dot": draw.DOT, "svg": draw.SVG}[format]
	// The drawing is escaped for its format; what is left are names and signs.
	_, err = io.WriteString(e.stdout, strings.TrimRight(paint(p, o), "\n")+"\n")
	return err
}

// liveDefinition returns what a workflow runs, and where its steps stand.
func (e workflowEnv) liveDefinition(ctx context.Context, id string) (w jobhost.Workflow, status func(string) jobhost.StepStatus, err error) {
	server, err := workflowSubject.server(e.env, id)
	if err != nil {
		return w, nil, err
	}
	run, err := server.Workflow(ctx, id)
	if err != nil {
		return w, nil, err
	}
	stands := make(map[string]jobhost.StepStatus, len(run.Steps))
	for i := range run.Steps {
		stands[run.Steps[i].Name] = run.Steps[i].Status
	}
	w, err = server.DefinitionOf(ctx, id)
	return w, func(step string) jobhost.StepStatus { return stands[step] }, err
}

// definitionSubject are definitions of workflows, which commands name; a file does, too.
var definitionSubject = subject{
	check: jobhost.CheckWorkflow,
	names: func(ctx context.Context, server jobhost.Server) (names []string) {
		list, _ := server.Definitions(ctx)
		for i := range list {
			names = append(names, list[i].Name)
		}
		return names
	},
}

// completeDefinitions offers the names of definitions to the shell, and files.
func completeDefinitions(e *env) cobra.CompletionFunc {
	offer := definitionSubject.complete(e)
	return func(cmd *cobra.Command, args []string, part string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, _ := offer(cmd, args, part)
		return names, cobra.ShellCompDirectiveDefault
	}
}
