package jobhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxWorkflowIDBytes bounds the id of a workflow, leaving room for the ids of its jobs.
const MaxWorkflowIDBytes = 80

// WorkflowStart is a workflow to start.
type WorkflowStart struct {
	// ID names it: see [CheckWorkflowID]; empty = a new one. Starting the same id with the same
	// content again returns the existing workflow; with other content it is a conflict.
	ID string
	// Workflow is the name of a definition on the host, Definition one that is passed
	// along. Exactly one of them is set.
	Workflow   string
	Definition *Workflow
	// Input is JSON, or any bytes for workflows without expressions that read it.
	Input []byte
	// Labels are added to those of the definition, and override them.
	Labels map[string]string
	// Retention is how long it is kept after its end, with its jobs; 0 = as the host says.
	Retention time.Duration
}

// Check reports everything that is wrong with the start in itself. Definitions are checked by
// [WorkflowDefiner.CheckWorkflow].
func (s *WorkflowStart) Check() error {
	var id, which error
	if s.ID != "" {
		id = CheckWorkflowID(s.ID)
	}
	switch {
	case (s.Workflow == "") == (s.Definition == nil):
		which = invalid("workflow", "a start needs the name of a workflow or a definition, one of them")
	case s.Workflow != "":
		which = CheckWorkflow(s.Workflow)
	}
	return errors.Join(id, which, checkLabels(s.Labels), inRange("retention", Duration(s.Retention), 0, Duration(MaxRetention)))
}

// CheckWorkflowID returns an error with code [CodeInvalid] unless id is a valid id for a workflow
// to start: [WorkflowIDPrefix], then letters, digits, _ and -, up to [MaxWorkflowIDBytes] bytes.
func CheckWorkflowID(id string) error {
	rest, found := strings.CutPrefix(id, WorkflowIDPrefix)
	if found && len(id) <= MaxWorkflowIDBytes && isName(rest, true) && !strings.Contains(rest, ".") {
		return nil
	}
	return &Error{
		Code: CodeInvalid, Field: "id", Message: clip(id) + " is not the id of a workflow",
		Hint: "use wf- and then 1 to 77 of A-Z a-z 0-9 _ - beginning with a letter or digit, such as wf-order-17",
	}
}

// CheckAnyWorkflowID returns an error with code [CodeInvalid] unless id can be that of a started
// workflow: one that [CheckWorkflowID] accepts, or that of a step of another workflow, which has
// dots.
func CheckAnyWorkflowID(id string) error {
	rest, found := strings.CutPrefix(id, WorkflowIDPrefix)
	if found && len(id) <= MaxIDBytes && isName(rest, true) {
		return nil
	}
	return &Error{
		Code: CodeInvalid, Field: "id", Message: clip(id) + " is not the id of a workflow", Hint: "they begin with " + WorkflowIDPrefix,
	}
}

// WorkflowReceipt acknowledges a start: the workflow is durable.
type WorkflowReceipt struct {
	ID     string         `json:"id"`
	Status WorkflowStatus `json:"status"`
	// Deduplicated is true when it already existed.
	Deduplicated bool `json:"deduplicated"`
}

// WorkflowRun describes a workflow that was started.
type WorkflowRun struct {
	ID     string            `json:"id"`
	Name   string            `json:"name"`
	Status WorkflowStatus    `json:"status"`
	Labels map[string]string `json:"labels,omitempty"`
	// Definition is the hash of the definition that it runs.
	Definition string `json:"definition,omitempty"`
	// Parent is the workflow that this one is a step of, and ParentStep the step.
	Parent     string     `json:"parent,omitempty"`
	ParentStep string     `json:"parent_step,omitempty"`
	StartedAt  time.Time  `json:"started_at"`
	EndedAt    *time.Time `json:"ended_at,omitempty"`
	// Step is the one that made it fail, or terminated it, and Reason says why it was cancelled.
	Step    string   `json:"step,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
	// Output is what it returned. Output that is not JSON becomes a string, in base64 if it
	// is not text; output larger than [MaxStepOutput] is left out, with OutputSize set: see
	// [WorkflowRunner.OpenWorkflowOutput]. Lists contain no outputs and steps.
	Output     json.RawMessage `json:"output,omitempty"`
	OutputSize int64           `json:"output_size,omitempty"`
	Steps      []StepRun       `json:"steps,omitempty"`
}

// MaxStepOutput bounds the output of a workflow or a step where it is shown.
const MaxStepOutput = 64 << 10

// StepRun describes a step of a workflow that was started.
type StepRun struct {
	Name   string     `json:"name"`
	Status StepStatus `json:"status"`
	// Reason says, for people, what it waits for, or why it was skipped or cancelled.
	Reason string `json:"reason,omitempty"`
	// Job is the job that it runs, and Workflow the id of the workflow that it runs.
	Job      string `json:"job,omitempty"`
	Workflow string `json:"workflow,omitempty"`
	Tasks    int    `json:"tasks,omitempty"`
	// Runs counts how often it has begun, more than once after manual retries.
	Runs int `json:"runs,omitempty"`
	// Fallback is the step or worker that ran in its place.
	Fallback  string     `json:"fallback,omitempty"`
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	// Output and OutputSize are as in [WorkflowRun].
	Output     json.RawMessage `json:"output,omitempty"`
	OutputSize int64           `json:"output_size,omitempty"`
	Failure    *Failure        `json:"failure,omitempty"`
}

// WorkflowFilter selects workflows for a list. The zero value selects everything.
type WorkflowFilter struct {
	Name   string
	Status WorkflowStatus
	// Parent selects the steps of that workflow; empty = no restriction.
	Parent string
	// After and Before bound the start: After ≤ started < Before.
	After, Before time.Time
	// Cursor continues a list: the Next of the page before.
	Cursor string
	// Limit is the size of a page, up to [MaxPage]; 0 = 50.
	Limit int
}

// Check reports everything that is wrong with the filter.
func (f *WorkflowFilter) Check() error {
	var name, status, parent error
	if f.Name != "" {
		name = CheckWorkflow(f.Name)
	}
	if f.Status != "" && !slices.Contains(WorkflowStatuses(), f.Status) {
		status = invalid("status", "%s is not a status of workflows", clip(string(f.Status)))
	}
	if f.Parent != "" {
		parent = CheckAnyWorkflowID(f.Parent)
	}
	return errors.Join(name, status, parent, checkText("cursor", f.Cursor, MaxIDBytes), inRange("limit", f.Limit, 0, MaxPage))
}

// WorkflowStatuses lists all statuses.
func WorkflowStatuses() []WorkflowStatus {
	return []WorkflowStatus{WorkflowRunning, WorkflowCompleted, WorkflowFailed, WorkflowCancelled}
}

// WorkflowPage is one page of a list of workflows, the latest start first.
type WorkflowPage struct {
	Workflows []WorkflowRun `json:"workflows"`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty"`
}

// WorkflowSignal is a signal to a workflow.
type WorkflowSignal struct {
	// Name is the name that a step waits for.
	Name string `json:"name"`
	// ID makes the signal count once, however often it is sent; empty = each counts.
	ID string `json:"id,omitempty"`
	// Payload is the output of the step, up to [MaxStepData] bytes.
	Payload []byte `json:"payload,omitempty"`
}

// Check reports everything that is wrong with the signal.
func (s *WorkflowSignal) Check() error {
	var size error
	if len(s.Payload) > MaxStepData {
		size = &Error{
			Code: CodeTooLarge, Field: "payload", Message: fmt.Sprintf("a payload of %d bytes is larger than %d", len(s.Payload), MaxStepData),
			Hint: "send where it is instead",
		}
	}
	return errors.Join(CheckStep(s.Name), checkText("id", s.ID, MaxIDBytes), size)
}

// TraceEntry is something that happened in a workflow, described for people.
type TraceEntry struct {
	Time time.Time `json:"time"`
	// Step is empty for the workflow itself.
	Step string `json:"step,omitempty"`
	// What is one of started, attempt (one that failed), completed, failed, skipped, cancelled.
	What string `json:"what"`
	// Job, Task and Attempt are set in entries about attempts.
	Job     string `json:"job,omitempty"`
	Task    int    `json:"task,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Took is how long it took, for what has ended.
	Took    Duration `json:"took,omitempty"`
	Detail  string   `json:"detail,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// WorkflowRunner starts workflows and reports on them. A workflow that does not exist is not_found.
type WorkflowRunner interface {
	// StartWorkflow returns when the workflow is durable, with the jobs of its first steps.
	// Errors: invalid (all faults of a definition joined), not_found (no such definition), conflict (the
	// id is taken by other content), too_large, exhausted (a queue of a first step is
	// full, or too many workflows are open), unavailable.
	StartWorkflow(ctx context.Context, start WorkflowStart) (WorkflowReceipt, error)
	Workflow(ctx context.Context, id string) (WorkflowRun, error)
	Workflows(ctx context.Context, filter WorkflowFilter) (WorkflowPage, error)
	// WaitWorkflow returns the workflow when it has ended. If ctx ends first, the
	// error is its cause and the workflow is returned in its current state.
	WaitWorkflow(ctx context.Context, id string) (WorkflowRun, error)
	// OpenWorkflowOutput returns what a workflow returned, as a stream of any size; conflict
	// while it has not completed.
	OpenWorkflowOutput(ctx context.Context, id string) (Content, error)
	// TraceWorkflow lists what happened, in chronological order; up to [MaxTrace] entries.
	TraceWorkflow(ctx context.Context, id string) ([]TraceEntry, error)
}

// MaxTrace bounds a trace; the last entry says if something was left out.
const MaxTrace = 10_000

// WorkflowController signals, cancels, retries and deletes workflows.
type WorkflowController interface {
	// SignalWorkflow delivers a signal to the step that waits for it, or keeps it until
	// one does. Errors: not_found (also: no step waits for such a signal), conflict (the
	// workflow has ended), exhausted (too many signals are kept), too_large.
	SignalWorkflow(ctx context.Context, id string, signal WorkflowSignal) error
	// CancelWorkflow ends a workflow and everything that it runs. Cancelling a cancelled
	// one is not an error; conflict when it has already ended in another status.
	CancelWorkflow(ctx context.Context, id, reason string) (WorkflowRun, error)
	// RetryWorkflow runs a failed step again, by default (empty name) the one that made the
	// workflow fail, and the workflow continues from there. Conflict when there is none.
	RetryWorkflow(ctx context.Context, id, step string) (WorkflowRun, error)
	// DeleteWorkflow removes a workflow that has ended, with its jobs; conflict while it runs, or
	// if it is a step of another.
	DeleteWorkflow(ctx context.Context, id string) error
}

// WorkflowDefiner lists and checks workflow definitions.
type WorkflowDefiner interface {
	// Definitions returns all of them, sorted by name.
	Definitions(ctx context.Context) ([]Workflow, error)
	// Definition returns one by name; not_found.
	Definition(ctx context.Context, name string) (Workflow, error)
	// DefinitionOf returns the one that a workflow runs, by the workflow's id.
	DefinitionOf(ctx context.Context, id string) (Workflow, error)
	// CheckWorkflow checks a definition against the host's workers and its other
	// definitions. The error joins all faults, each invalid with its field.
	CheckWorkflow(ctx context.Context, w Workflow) error
}
