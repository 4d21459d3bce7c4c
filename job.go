package jobhost

import "time"

// Job describes a job and its current state.
type Job struct {
	ID          string            `json:"id"`
	Worker      string            `json:"worker"`
	State       State             `json:"state"`
	Priority    Priority          `json:"priority"`
	Entry       string            `json:"entry,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	// ConcurrencyKey groups jobs: see [Spec].
	ConcurrencyKey string `json:"concurrency_key,omitempty"`
	// Deadline is when waiting tasks are given up; nil = never.
	Deadline *time.Time `json:"deadline,omitempty"`
	// UniqueKey keeps out other jobs with the same key until UniqueUntil; nil =
	// for as long as the job is kept.
	UniqueKey   string     `json:"unique_key,omitempty"`
	UniqueUntil *time.Time `json:"unique_until,omitempty"`
	Callback    *Callback  `json:"callback,omitempty"`

	PayloadSize int       `json:"payload_size"`
	MaxAttempts int       `json:"max_attempts"`
	Timeout     Duration  `json:"timeout"`
	Retention   Duration  `json:"retention,omitempty"` // 0 = as the worker says
	CreatedAt   time.Time `json:"created_at"`
	// Parent is the id of the job that submitted this one; empty = it was submitted from
	// outside.
	Parent string `json:"parent,omitempty"`
	// Workflow is the id of the workflow that the job is a step of, and Step the step's name.
	Workflow string `json:"workflow,omitempty"`
	Step     string `json:"step,omitempty"`
	// EndedAt is when the last task ended; nil while one is open.
	EndedAt *time.Time `json:"ended_at,omitempty"`
	// TaskCount is the number of tasks; Tasks lists them when a single job is read, not in lists.
	TaskCount int    `json:"task_count"`
	Tasks     []Task `json:"tasks,omitempty"`
	// Failures are the error records of failed attempts, oldest first; not in lists.
	Failures []Failure `json:"failures,omitempty"`
}

// Task is one partition of a job.
type Task struct {
	Index int   `json:"index"`
	State State `json:"state"`
	// Attempt is the number of attempts started, excluding those that don't count.
	Attempt int `json:"attempt"`
	// Course rises whenever the task's course changes: it becomes odd when an
	// attempt begins, and even when it ends or the task is cancelled or retried.
	Course int64 `json:"course,omitempty"`
	// ReadyAt is when the task may run or could have run.
	ReadyAt   time.Time  `json:"ready_at"`
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	// ResultSize is the number of bytes of the result, with Succeeded.
	ResultSize int `json:"result_size"`
	// Fuel is the work of all attempts together: see [Outcome].
	Fuel int64 `json:"fuel,omitempty"`
	// Done and Total are the progress that the running attempt reported; Total 0 = none.
	Done  int64 `json:"done,omitempty"`
	Total int64 `json:"total,omitempty"`
}

// Receipt acknowledges a submit: the job is durable.
type Receipt struct {
	ID    string `json:"id"`
	State State  `json:"state"`
	// Deduplicated is true when the job already existed.
	Deduplicated bool `json:"deduplicated"`
}

// Filter selects jobs for a list. The zero value selects everything.
type Filter struct {
	Worker string
	// Parent selects the jobs submitted by the job with that id.
	Parent string
	// Labels are those that a job must have; at most [MaxLabels].
	Labels map[string]string
	// State selects jobs with at least one task in that state.
	State State
	// After and Before bound the time of submission: After ≤ created < Before.
	After, Before time.Time
	// Cursor continues a list: the Next of the page before.
	Cursor string
	// Limit is the size of a page, up to [MaxPage]; 0 = 50.
	Limit int
}

// MaxPage is the largest page of a list.
const MaxPage = 1000

// Page is one page of a list of jobs, newest first.
type Page struct {
	Jobs []Job `json:"jobs"`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty"`
}

// Result is what a task that succeeded returned.
type Result struct {
	Task int
	Data []byte
}

// AttemptLog is what one attempt logged.
type AttemptLog struct {
	Task    int `json:"task"`
	Attempt int `json:"attempt"`
	// Lines are complete lines as the host wrote them: a level, a space, and
	// the text with control characters escaped.
	Lines []string `json:"lines"`
	// Dropped counts the lines beyond the limits.
	Dropped int64 `json:"dropped,omitempty"`
}

// Why explains why a job is in its current state.
type Why struct {
	ID    string `json:"id"`
	State State  `json:"state"`
	// Reason is one sentence; Code is its stable short form.
	Code   string `json:"code"`
	Reason string `json:"reason"`
	// Until is when that ends without intervention; nil = not by time.
	Until *time.Time `json:"until,omitempty"`
	// Ends says what would end it.
	Ends string `json:"ends,omitempty"`
}
