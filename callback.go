package jobhost

import (
	"errors"
	"time"

	"github.com/jobhost/jobhost/internal/httpurl"
)

// Callback says who is told when a job has ended, whichever way: a worker or a
// URL. The zero value is nobody. It is a job that tells them, submitted together
// with the end: there is never one without the other.
type Callback struct {
	// Worker gets a job whose payload is an [Ended] as JSON.
	Worker string `json:"worker,omitempty"`
	// URL is where an [Ended] is posted to, as the data of a [Message], by a job of
	// [WebhookWorker].
	URL string `json:"url,omitempty"`
}

// WebhookWorker is the host's own worker that posts messages to URLs. Nobody
// else submits jobs to it.
const WebhookWorker = ReservedWorkers + "webhook"

// HTTPWorker is the host's own worker that sends the requests which attempts
// leave to it. Nobody else submits jobs to it.
const HTTPWorker = ReservedWorkers + "http"

// WorkflowWorker is the host's own worker whose jobs are the timers of workflows.
const WorkflowWorker = ReservedWorkers + "workflow"

// ReservedWorkers is what the names of the host's own workers begin with, and no
// others.
const ReservedWorkers = "jobhost."

// Labels of the jobs of [WebhookWorker].
const (
	LabelWebhook    = "webhook"     // type of the message
	LabelWebhookJob = "webhook.job" // id of the job that it is about
)

// Types of a [Message].
const (
	MessageEnded = "job.ended" // Data is an [Ended]
	MessageDead  = "task.dead" // Data is a [DeadLetter]
)

// Message is what is posted to a URL, as the Standard Webhooks specification has
// it: docs/webhooks.md.
type Message struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // of what it tells of
	Data      any       `json:"data"`
}

// CheckURL returns an error with code [CodeInvalid] unless url may be that of a
// callback: an absolute one of http or https, without user and fragment, up to
// 2048 bytes.
func CheckURL(url string) error {
	_, err := httpurl.Parse(url)
	if e, ok := errors.AsType[*httpurl.Error](err); ok {
		return &Error{Code: CodeInvalid, Field: "callback", Message: e.Message, Hint: e.Hint}
	}
	return err
}

// Ended tells a [Callback] of a job that has ended.
type Ended struct {
	Job     string            `json:"job"`
	Worker  string            `json:"worker"`
	State   State             `json:"state"`
	Labels  map[string]string `json:"labels,omitempty"`
	EndedAt time.Time         `json:"ended_at"`
	// Tasks counts the job's tasks by state.
	Tasks TaskNumbers `json:"tasks"`
	// Result is what the job returned, if it has one task and that is text;
	// ResultBase64 if it is not. Both are left out when they don't fit into a payload.
	Result       string `json:"result,omitempty"`
	ResultBase64 []byte `json:"result_base64,omitempty"`
	// Failure is that of the last attempt, if the job has one task and that is dead.
	Failure *Failure `json:"failure,omitempty"`
}
