package record

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
)

// options are those that few jobs have. The names are stored.
type options struct {
	ConcurrencyKey string   `json:"concurrency_key,omitempty"`
	Deadline       Millis   `json:"deadline,omitempty"`
	UniqueKey      string   `json:"unique_key,omitempty"`
	UniqueUntil    Millis   `json:"unique_until,omitempty"`
	CallbackWorker string   `json:"callback_worker,omitempty"`
	CallbackURL    string   `json:"callback_url,omitempty"`
	ItemBytes      *int64   `json:"item_bytes,omitempty"` // of all items; nil = the job has none
	MaxParallel    int      `json:"max_parallel,omitempty"`
	Retry          *retry   `json:"retry,omitempty"`
	Breaker        *breaker `json:"breaker,omitempty"`
	// Borrowed is a reference that the job doesn't own, so that it doesn't go with it.
	Borrowed string  `json:"borrowed,omitempty"`
	Origin   *origin `json:"origin,omitempty"`
}

// origin is an [Origin].
type origin struct {
	Workflow Key    `json:"workflow"`
	ID       string `json:"id"`
	Step     string `json:"step,omitempty"`
	Mark     string `json:"mark"`
}

// OptionsText returns the JSON that is kept of a job's options, those that few jobs have; empty = it has none.
func (j *JobSpec) OptionsText() (string, error) {
	o := options{
		ConcurrencyKey: j.ConcurrencyKey, Deadline: j.Deadline, UniqueKey: j.UniqueKey, UniqueUntil: j.UniqueUntil,
		CallbackWorker: j.Callback.Worker, CallbackURL: j.Callback.URL, Origin: (*origin)(j.Origin),
		ItemBytes: itemBytes(j), MaxParallel: j.MaxParallel, Retry: retryOf(j.Retry), Breaker: breakerOf(j.Breaker),
	}
	if j.Borrowed {
		o.Borrowed = j.Ref
	}
	if o == (options{}) {
		return "", nil
	}
	text, err := json.Marshal(&o)
	if err != nil {
		return "", fmt.Errorf("encode options of job %s: %w", j.ID, err)
	}
	return string(text), nil
}

// SetOptions sets the options of a job from the text that is kept of them. It returns the size of the payloads of its
// tasks together; nil = they have none of their own.
func (j *JobSpec) SetOptions(text string) (itemBytes *int64, err error) {
	if text == "" {
		return nil, nil
	}
	o := &options{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		return nil, fmt.Errorf("options of job %s: %w", j.ID, err)
	}
	j.ConcurrencyKey, j.Deadline = o.ConcurrencyKey, o.Deadline
	j.UniqueKey, j.UniqueUntil = o.UniqueKey, o.UniqueUntil
	j.Callback.Worker, j.Callback.URL = o.CallbackWorker, o.CallbackURL
	j.MaxParallel, j.Retry, j.Breaker = o.MaxParallel, o.Retry.policy(), o.Breaker.policy()
	j.Origin = (*Origin)(o.Origin)
	if o.Borrowed != "" {
		j.Ref, j.Borrowed = o.Borrowed, true
	}
	return o.ItemBytes, nil
}

// retry is a [jobhost.RetryPolicy] as it is kept: the names are stored.
type retry struct {
	MaxAttempts int             `json:"max_attempts,omitempty"`
	Backoff     jobhost.Backoff `json:"backoff,omitempty"`
	Initial     time.Duration   `json:"initial_ns,omitempty"`
	Multiplier  float64         `json:"multiplier,omitempty"`
	Increment   time.Duration   `json:"increment_ns,omitempty"`
	Max         time.Duration   `json:"max_ns,omitempty"`
	Jitter      float64         `json:"jitter,omitempty"`
}

func retryOf(p *jobhost.RetryPolicy) *retry { return (*retry)(p) }

func (r *retry) policy() *jobhost.RetryPolicy { return (*jobhost.RetryPolicy)(r) }

// breaker is a [jobhost.BreakerPolicy] as it is kept: the names are stored.
type breaker struct {
	Key      string           `json:"key"`
	Failures int              `json:"failures,omitempty"`
	Timeout  time.Duration    `json:"timeout_ns,omitempty"`
	Probes   int              `json:"probes,omitempty"`
	WhenOpen jobhost.WhenOpen `json:"when_open,omitempty"`
}

func breakerOf(p *jobhost.BreakerPolicy) *breaker { return (*breaker)(p) }

func (b *breaker) policy() *jobhost.BreakerPolicy { return (*jobhost.BreakerPolicy)(b) }

// itemBytes returns the sum of the sizes of a job's items; nil = it has none.
func itemBytes(job *JobSpec) *int64 {
	if job.Items == nil {
		return nil
	}
	n := job.ItemBytes()
	return &n
}

// LabelsText returns the JSON that is kept of a job's labels; empty = it has none.
func (j *JobSpec) LabelsText() (string, error) {
	if len(j.Labels) == 0 {
		return "", nil
	}
	text, err := json.Marshal(j.Labels)
	if err != nil {
		return "", fmt.Errorf("encode labels of job %s: %w", j.ID, err)
	}
	return string(text), nil
}

// SetLabels sets the labels of a job from the text that is kept of them.
func (j *JobSpec) SetLabels(text string) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &j.Labels); err != nil {
		return fmt.Errorf("labels of job %s: %w", j.ID, err)
	}
	return nil
}
