package jobhost

import (
	"errors"
	"time"

	"github.com/jobhost/jobhost/internal/httpurl"
)

// Callback says where to report that a job has ended, however it ended: to a
// worker or a URL. The zero value is none. The report is itself a job, committed
// together with the end: neither exists without the other.
type Callback struct {
	// Worker gets a job whose payload is an [Ended] as JSON.
	Worker string `json:"worker,omitempty"`
	// URL is where an [Ended] is posted to, as the data of a [Message], by a job of
	// [WebhookWorker].
	URL string `json:"url,omitempty"`
}

// WebhookWorker is the host's own worker that posts messages to URLs. Only the
// host submits jobs to it.
const WebhookWorker = ReservedWorkers + "webhook"

// HTTPWorker is the host's own worker that sends the requests that attempts
// leave to it. Only the host submits jobs to it.
const HTTPWorker = ReservedWorkers + "http"

// WorkflowWorker is the host's own worker whose jobs are the timers of workflows.
const WorkflowWorker = ReservedWorkers + "workflow"

// ReservedWorkers is the prefix of the names of the host's own workers; no other
// worker's name may begin with it.
const ReservedWorkers = "jobhost."

// Labels of the jobs of [WebhookWorker].
const (
	LabelWebhook    = "webhook"     // type of the message
	LabelWebhookJob = "webhook.job" // id of the job that the message is about
)

// Types of a [Message].
const (
	MessageEnded = "job.ended" // Data is an [Ended]
	MessageDead  = "task.dead" // Data is a [DeadLetter]
)

// Message is what is posted to a URL, in the form that the Standard Webhooks
// specification defines: see docs/webhooks.md.
type Message struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // of the event that is reported
	Data      any       `json:"data"`
}

// CheckURL returns an error with code [CodeInvalid] unless url can be used for
// a callback: an absolute http or https URL without user and fragment, up to
// 2048 bytes.
func CheckURL(url string) error {
	_, err := httpurl.Parse(url)
	if e, ok := errors.AsType[*httpurl.Error](err); ok {
		return &Error{Code: CodeInvalid, Field: "callback", Message: e.Message, Hint: e.Hint}
	}
	return err
}

// Ended is the report to a [Callback] that a job has ended.
type Ended struct {
	Job     string            `json:"job"`
	Worker  string            `json:"worker"`
	State   State             `json:"state"`
	Labels  map[string]string `json:"labels,omitempty"`
	EndedAt time.Time         `json:"ended_at"`
	// Tasks counts the job's tasks by state.
	Tasks TaskNumbers `json:"tasks"`
	// Result is what the job returned, if it has one task and the result is text;
	// ResultBase64 if it is not text. Both are left out when they don't fit into a
	// payload.
	Result       string `json:"result,omitempty"`
	ResultBase64 []byte `json:"result_base64,omitempty"`
	// Failure is that of the last attempt, if the job has one task and that task is
	// dead.
	Failure *Failure `json:"failure,omitempty"`
}
