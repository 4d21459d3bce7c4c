package record

// Origin says which step of which workflow a job is for.
type Origin struct {
	// Workflow is the key of the workflow, and ID its id.
	Workflow Key
	ID       string
	Step     string // its name; empty = a timer of the workflow itself
	// Mark tells package workflow which run of the step it is. Stores don't look at it.
	// It is empty, as Step is, when the job's options are damaged: then its id tells.
	Mark string
}

// WorkflowID returns the id of the workflow; empty for a nil Origin.
func (o *Origin) WorkflowID() string {
	if o == nil {
		return ""
	}
	return o.ID
}

// StepName returns the name of the step; empty for a nil Origin.
func (o *Origin) StepName() string {
	if o == nil {
		return ""
	}
	return o.Step
}
