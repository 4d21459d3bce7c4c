package jobhost

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"
)

// Bounds of workflows that no configuration changes.
const (
	MaxSteps          = 10_000
	MaxNeeds          = 1_000_000 // of all steps together
	MaxWorkflowBytes  = 8 << 20   // of a definition as JSON
	MaxExpressionSize = 4 << 10   // of one expression
	MaxFanOut         = MaxTasks  // elements of one fan-out
	MaxStepData       = 64 << 10  // bytes of one output that expressions can read
	MaxStepBytes      = 63        // of the name of a step, or of a signal
	MaxDescription    = 4 << 10
)

// Workflow is a directed graph of steps, each of which is a job, another workflow, a
// wait for a signal or a wait for a time. Steps that don't depend on each other run
// in parallel.
//
// Expressions are in CEL. They see
//
//	input          what the workflow was started with, as JSON
//	steps.NAME     of each step above: status, output, error, of those that have ended
//	item, index    in the input of a step with fan_out
//	output         in terminate: what the step itself has returned
//	workflow       id, name, labels, started (a timestamp)
//
// steps["NAME"] is the same, for names that are not identifiers in CEL. output
// and error are null if there is none.
type Workflow struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// InputSchema is a JSON Schema of the input, OutputSchema of the output; empty = any.
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// Output is an expression for what the workflow returns; empty = the output of the
	// step with Output, or of its only last step, or a map of the outputs of all last
	// steps. A step without output, such as a skipped one, contributes null.
	Output string `json:"output,omitempty"`
	// Timeout bounds the whole workflow; 0 = none.
	Timeout  Duration `json:"timeout,omitempty"`
	Priority Priority `json:"priority,omitempty"`
	// MaxParallel limits the steps whose jobs or workflows run at one time; 0 = no limit. Steps
	// that wait for a signal or a time don't count.
	MaxParallel int               `json:"max_parallel,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Steps       []Step            `json:"steps"`
}

// Step is a node of a [Workflow]. Exactly one of Worker, Workflow, Signal and
// Sleep says what it does.
type Step struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`

	// Worker runs a job, which calls Entry; empty = the worker's own.
	Worker string `json:"worker,omitempty"`
	Entry  string `json:"entry,omitempty"`
	// Workflow runs another workflow, by its name.
	Workflow string `json:"workflow,omitempty"`
	// Signal waits for a signal of that name, whose payload is the output.
	Signal string `json:"signal,omitempty"`
	// Sleep waits for a time.
	Sleep Duration `json:"sleep,omitempty"`

	// Needs are the names of the steps that must come before.
	Needs []string `json:"needs,omitempty"`
	// When is a condition: if it is false, the step is skipped.
	When string `json:"when,omitempty"`
	// WhenSkipped says what happens to the step if one that it needs was skipped.
	WhenSkipped WhenSkipped `json:"when_skipped,omitempty"`
	// Input is an expression for the payload; empty = the workflow's input for a step that
	// needs none, the output of the only one needed, or a map of the outputs of all needed; for
	// a fallback, the input of the step it stands in for. A string or bytes become the payload
	// as they are, anything else as JSON, as does a JSON string longer than [MaxStepData] that
	// is passed on whole.
	Input       string `json:"input,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	// FanOut is an expression for a list: there is a task for each element, whose
	// payload is Input, or the element itself. The outputs are a list in the same
	// order.
	FanOut string `json:"fan_out,omitempty"`
	// MaxParallel limits the tasks of a fan-out that run at one time; 0 = no limit.
	MaxParallel int `json:"max_parallel,omitempty"`
	// Tasks is the number of tasks of a step without FanOut, which all have the same payload; 0 = 1.
	Tasks int `json:"tasks,omitempty"`

	// Retry says how often and when failed attempts are retried; nil = as the worker does.
	Retry *StepRetry `json:"retry,omitempty"`
	// Breaker holds the step's tasks while others of the same key fail; nil = only the worker's does.
	Breaker *StepBreaker `json:"breaker,omitempty"`
	// Timeout bounds each attempt of a worker; for a signal it is how long to wait. 0 = the worker's, or
	// none.
	Timeout Duration `json:"timeout,omitempty"`
	// Deadline bounds the step as a whole, with all its attempts; 0 = none. A fallback worker
	// gets the same time again. A step whose job was revived manually no longer has one.
	Deadline Duration          `json:"deadline,omitempty"`
	Priority *Priority         `json:"priority,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`

	// Fallback is a step, or if there is none of that name a worker, that runs when this
	// one has failed; if it succeeds, its output becomes this step's, and the workflow
	// continues. A step that is a fallback runs for nothing else: it has no needs, no
	// step needs it, and it is the fallback of one step only. It may have a fallback
	// itself. Its expressions see what those of this step see, and steps.NAME of this
	// one, with its error. Its OnError is ignored. A step that was cancelled
	// individually has not failed, and its fallback doesn't run.
	Fallback string `json:"fallback,omitempty"`
	// OnError says what a failure of the step means for the workflow.
	OnError OnError `json:"on_error,omitempty"`
	// Terminate is a condition, evaluated after success: if it is true, the workflow
	// ends there, succeeded, with the step's output, and what still runs is cancelled.
	Terminate string `json:"terminate,omitempty"`
	// Output makes the step's output the workflow's.
	Output bool `json:"output,omitempty"`

	// InputSchema and OutputSchema are JSON Schemas of what the step takes and
	// returns; empty = anything. With FanOut or Tasks they apply to each task.
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// OnError says what a failure of a step means for the workflow.
type OnError string

// The values of OnError.
const (
	FailWorkflow     OnError = "fail"     // the workflow fails, and what still runs is cancelled; the default
	ContinueWorkflow OnError = "continue" // steps that need it run, with its error; the workflow can succeed
)

// WhenSkipped says what happens to a step if one that it needs was skipped.
type WhenSkipped string

// The values of WhenSkipped.
const (
	SkipToo     WhenSkipped = "skip" // it is skipped too; the default
	RunAnyway   WhenSkipped = "run"  // it runs if at least one step that it needs was not skipped
	RunWhatever WhenSkipped = "run_always"
)

// StepRetry is a [RetryPolicy] of a step. What is left out is taken from the worker's.
type StepRetry struct {
	MaxAttempts int      `json:"max_attempts,omitempty"`
	Backoff     Backoff  `json:"backoff,omitempty"`
	Initial     Duration `json:"initial,omitempty"`
	Multiplier  float64  `json:"multiplier,omitempty"`
	Increment   Duration `json:"increment,omitempty"`
	Max         Duration `json:"max,omitempty"`
	Jitter      *float64 `json:"jitter,omitempty"`
}

// StepBreaker is a [BreakerPolicy] of a step. What is left out has its default.
type StepBreaker struct {
	Key      string   `json:"key,omitempty"` // empty = WORKFLOW/STEP
	Failures int      `json:"failures,omitempty"`
	Timeout  Duration `json:"timeout,omitempty"`
	Probes   int      `json:"probes,omitempty"`
	WhenOpen WhenOpen `json:"when_open,omitempty"`
}

// Over returns base, the policy of the worker, with what the step sets replaced.
func (r *StepRetry) Over(base RetryPolicy) RetryPolicy {
	if r == nil {
		return base
	}
	base.MaxAttempts = cmp.Or(r.MaxAttempts, base.MaxAttempts)
	base.Backoff = cmp.Or(r.Backoff, base.Backoff)
	base.Initial = cmp.Or(time.Duration(r.Initial), base.Initial)
	base.Multiplier = cmp.Or(r.Multiplier, base.Multiplier)
	base.Increment = cmp.Or(time.Duration(r.Increment), base.Increment)
	// A delay that the step asks for is not cut by a bound that it doesn't know.
	base.Max = cmp.Or(time.Duration(r.Max), max(base.Max, base.Initial))
	if r.Jitter != nil {
		base.Jitter = *r.Jitter
	}
	return base
}

// Policy returns the policy of the breaker of a step, with the defaults.
func (b *StepBreaker) Policy(workflow, step string) BreakerPolicy {
	p := DefaultBreaker(cmp.Or(b.Key, workflow+"/"+step))
	p.Failures = cmp.Or(b.Failures, p.Failures)
	p.Timeout = cmp.Or(time.Duration(b.Timeout), p.Timeout)
	p.Probes = cmp.Or(b.Probes, p.Probes)
	p.WhenOpen = cmp.Or(b.WhenOpen, p.WhenOpen)
	return p
}

// CheckWorkflow returns an error with code [CodeInvalid] unless name is a valid
// workflow name: like a worker's, see [CheckWorker].
func CheckWorkflow(name string) error {
	if len(name) <= MaxWorkerBytes && isName(name, false) {
		return nil
	}
	message := clip(name) + " is not a workflow name"
	if name == "" {
		message = "the workflow has no name"
	}
	return &Error{Code: CodeInvalid, Field: "name", Message: message, Hint: "use 1 to 63 of a-z 0-9 . _ - beginning with a letter or digit"}
}

// CheckStep returns an error with code [CodeInvalid] unless name is a valid name
// of a step or a signal: 1 to [MaxStepBytes] letters, digits, underscores and
// dashes, beginning with a letter or digit.
func CheckStep(name string) error {
	if len(name) <= MaxStepBytes && isName(name, true) && !strings.Contains(name, ".") {
		return nil
	}
	message := clip(name) + " is not a step name"
	if name == "" {
		message = "the step has no name"
	}
	return &Error{Code: CodeInvalid, Field: "name", Message: message, Hint: "use 1 to 63 of A-Z a-z 0-9 _ - beginning with a letter or digit"}
}

// StepStatus is the status of a step of a running workflow.
type StepStatus string

// The statuses of steps. Those from StepCompleted on are terminal.
const (
	StepPending   StepStatus = "pending"   // waits for other steps
	StepRunning   StepStatus = "running"   // its job exists
	StepRetrying  StepStatus = "retrying"  // an attempt failed, and there will be another
	StepCompleted StepStatus = "completed" // also by its fallback
	StepFailed    StepStatus = "failed"
	StepSkipped   StepStatus = "skipped" // its condition was false, or a step that it needs was skipped
	StepCancelled StepStatus = "cancelled"
)

// Ended reports whether the status is terminal.
func (s StepStatus) Ended() bool {
	return s == StepCompleted || s == StepFailed || s == StepSkipped || s == StepCancelled
}

// WorkflowStatus is the status of a workflow.
type WorkflowStatus string

// The statuses of workflows. Those after WorkflowRunning are terminal.
const (
	WorkflowRunning   WorkflowStatus = "running"
	WorkflowCompleted WorkflowStatus = "completed"
	WorkflowFailed    WorkflowStatus = "failed"
	WorkflowCancelled WorkflowStatus = "cancelled"
)

// Ended reports whether the status is terminal.
func (s WorkflowStatus) Ended() bool { return s != WorkflowRunning }

// Failure codes of steps for failures outside any attempt, besides [FailTimeout].
const (
	FailExpression = "expression" // an expression of the definition failed
	FailCancelled  = "cancelled"  // the step's job or workflow was cancelled individually
)

// WorkflowIDPrefix is the prefix of workflow ids, by which logs, jobs and metrics recognize them.
const WorkflowIDPrefix = "wf-"
