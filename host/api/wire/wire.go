// Package wire is the JSON that travels between host/api and client: the bodies
// of requests, both ways, the answers of a batch, results and problems.
package wire

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jobhost/jobhost"
)

// Media types of the API.
const (
	JSON    = "application/json"
	NDJSON  = "application/x-ndjson"
	Trouble = "application/problem+json"
	Stream  = "text/event-stream"
	Bytes   = "application/octet-stream"
)

// Headers that describe a key besides its value; times are as in
// RFC 3339.
const (
	KeyVersion   = "Jobhost-Key-Version"
	KeyChangedAt = "Jobhost-Key-Changed-At"
	KeyExpiresAt = "Jobhost-Key-Expires-At" // only if it does
)

// Names of the events of a stream that are about the stream itself; every
// other event is named after its [jobhost.EventKind].
const (
	// EventEnd is the last one: its data is the [Problem] that says why.
	EventEnd = "end"
	// EventOutput is something that a fiber published.
	EventOutput = "output"
	// EventResync says that the host was restarted since the id that the
	// reader wants to go on from: events are lost, and what the reader knows is old.
	EventResync = "resync"
)

// Names of the events of a stream of states.
const (
	EventState    = "state"    // a state, of those that there are or a change
	EventSentinel = "sentinel" // the current states have been sent
)

// Submitted is the answer to a submit that waits: the job as it is then, and
// what its tasks returned if it has ended.
type Submitted struct {
	jobhost.Job
	Deduplicated bool         `json:"deduplicated"`
	Results      []TaskResult `json:"results,omitempty"`
}

// TaskResult is a task with what it returned. Either Text or Base64 is set
// when the task has succeeded, and neither otherwise.
type TaskResult struct {
	Task  int           `json:"task"`
	State jobhost.State `json:"state"`
	Size  int           `json:"size"`
	// Text is the result, if that is valid UTF-8.
	Text *string `json:"result,omitempty"`
	// Base64 is the result otherwise; standard alphabet with padding in JSON.
	Base64 []byte `json:"result_base64,omitempty"`
}

// Set sets the result.
func (t *TaskResult) Set(data []byte) {
	t.Size = len(data)
	if !utf8.Valid(data) {
		t.Base64 = data
		return
	}
	text := string(data)
	t.Text = &text
}

// Data returns the result.
func (t *TaskResult) Data() []byte {
	if t.Text != nil {
		return []byte(*t.Text)
	}
	return t.Base64
}

// Answer is one line of the answer to a batch. It has an ID, or an Error.
type Answer struct {
	// Index is the place of the job in the batch, from 0.
	Index        int           `json:"index"`
	ID           string        `json:"id,omitempty"`
	State        jobhost.State `json:"state,omitempty"`
	Deduplicated bool          `json:"deduplicated,omitempty"`
	// Job comes when the batch was to wait, as far as the job was then, with
	// the results of its tasks if it has ended.
	Job     *jobhost.Job `json:"job,omitempty"`
	Results []TaskResult `json:"results,omitempty"`
	Error   *Problem     `json:"error,omitempty"`
}

// AppendReceipt appends a receipt as a JSON object.
func AppendReceipt(b []byte, r *jobhost.Receipt) []byte {
	return append(appendReceipt(append(b, '{'), r), '}')
}

// AppendAnswer appends the answer to a job that was taken as a JSON object. It
// is what encoding an [Answer] gives, without the reflection.
func AppendAnswer(b []byte, index int, r *jobhost.Receipt) []byte {
	b = append(b, `{"index":`...)
	b = appendInt(b, index)
	b = append(b, ',')
	return append(appendReceipt(b, r), '}')
}

func appendReceipt(b []byte, r *jobhost.Receipt) []byte {
	b = appendText(append(b, `"id":`...), r.ID)
	b = append(b, `,"state":"`...)
	b = append(b, r.State.String()...)
	b = append(b, `","deduplicated":`...)
	if r.Deduplicated {
		return append(b, "true"...)
	}
	return append(b, "false"...)
}

// appendText appends s as a JSON string. Bytes that are no UTF-8 become
// U+FFFD: what must arrive unchanged was checked before or goes as base64.
func appendText[T ~string | ~[]byte](b []byte, s T) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}
