package wire

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
)

// Names of the members of a submit's body.
const (
	nameWorker        = "worker"
	nameID            = "id"
	namePayload       = "payload"
	namePayloadBase64 = "payload_base64"
	namePayloadRef    = "payload_ref"
	nameContentType   = "content_type"
	nameEntry         = "entry"
	namePriority      = "priority"
	nameDelay         = "delay"
	nameRunAt         = "run_at"
	nameTasks         = "tasks"
	nameMaxAttempts   = "max_attempts"
	nameTimeout       = "timeout"
	nameRetention     = "retention"
	nameLabels        = "labels"

	nameConcurrencyKey = "concurrency_key"
	nameDeadline       = "deadline"
	nameUniqueKey      = "unique_key"
	nameUniqueFor      = "unique_for"
	nameCallback       = "callback"
	nameURL            = "url" // of a callback
)

// Member describes a member of a submit's body, for documentation.
type Member struct{ Name, Type, Doc string }

// Members lists the members of a submit's body. Type is that of JSON Schema;
// "" = any.
func Members() []Member {
	return []Member{
		{nameWorker, "string", "The worker of the manifest that is to do it. Required."},
		{nameID, "string", "Names the job; left out = a new UUID of version 7. The same id with the same content is the same job."},
		{namePayload, "", "What the worker gets: the text of a string, or the JSON text of any other value."},
		{namePayloadBase64, "string", "The payload as base64, for bytes that are no text; not together with payload."},
		{namePayloadRef, "string", "A payload that was uploaded: what POST /v1/payloads answered; not together with payload. It is for one job."},
		{nameContentType, "string", "Describes the payload; application/json if payload is not a string and nothing else is given."},
		{nameEntry, "string", "The export to call; left out = the worker's."},
		{namePriority, "string", "critical, high, normal (the default), low or background."},
		{nameDelay, "string", `When the job may start, counted from now, such as "5s"; not together with run_at.`},
		{nameRunAt, "string", "When the job may start, as RFC 3339."},
		{nameTasks, "integer", "The number of partitions; left out = 1."},
		{nameMaxAttempts, "integer", "How often it is tried, the first time included; left out = the worker's."},
		{nameTimeout, "string", `Bounds one attempt, such as "30s"; left out = the worker's.`},
		{nameConcurrencyKey, "string", "Jobs with the same key take turns with others, and count together for the worker's concurrency_per_key."},
		{nameDeadline, "string", `How long after the submit the job is given up if it waits, such as "1h".`},
		{nameUniqueKey, "string", "The worker has one job with this key at a time: another submit returns that one."},
		{nameUniqueFor, "string", `How long after its submit a job keeps others with its unique_key out, such as "1h"; left out = as long as it is kept.`},
		{nameCallback, "object", "Says who is told when this job has ended: in worker which worker gets a job, or in url which URL is posted to. Submitted together with the end."},
		{nameRetention, "string", `How long the job is kept after its end, such as "7d"; left out = as the worker says.`},
		{nameLabels, "object", "Texts by name, for people and filters."},
	}
}

func memberNames() []string { return names(Members()) }

// AppendSubmit appends the body that asks for spec. Decoding it gives an equal
// spec, unless texts of the spec are not valid UTF-8 (which no host accepts).
func AppendSubmit(b []byte, spec *jobhost.Spec) []byte {
	b = appendText(append(b, `{"worker":`...), spec.Worker)
	b = appendMember(b, nameID, spec.ID)
	b = appendContent(b, namePayload, namePayloadBase64, spec.Payload)
	b = appendMember(b, namePayloadRef, spec.PayloadRef)
	b = appendMember(b, nameContentType, spec.ContentType)
	b = appendMember(b, nameEntry, spec.Entry)
	if spec.Priority != 0 {
		b = appendMember(b, namePriority, spec.Priority.String())
	}
	if spec.Delay != 0 {
		b = appendMember(b, nameDelay, spec.Delay.String())
	}
	if !spec.RunAt.IsZero() {
		b = appendMember(b, nameRunAt, spec.RunAt.Format(time.RFC3339Nano))
	}
	b = appendNumber(b, nameTasks, spec.Tasks)
	b = appendNumber(b, nameMaxAttempts, spec.MaxAttempts)
	if spec.Timeout != 0 {
		b = appendMember(b, nameTimeout, spec.Timeout.String())
	}
	b = appendMember(b, nameConcurrencyKey, spec.ConcurrencyKey)
	b = appendMember(b, nameUniqueKey, spec.UniqueKey)
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{nameDeadline, spec.Deadline}, {nameUniqueFor, spec.UniqueFor}} {
		if d.value != 0 {
			b = appendMember(b, d.name, d.value.String())
		}
	}
	b = appendCallback(b, spec.Callback)
	if spec.Retention != 0 {
		b = appendMember(b, nameRetention, spec.Retention.String())
	}
	return append(appendLabels(b, spec.Labels), '}')
}

func appendCallback(b []byte, c jobhost.Callback) []byte {
	if c == (jobhost.Callback{}) {
		return b
	}
	b = append(appendName(b, nameCallback), '{')
	if c.Worker != "" {
		b = appendText(append(b, `"worker":`...), c.Worker)
	}
	if c.URL != "" {
		if c.Worker != "" { // which the host refuses
			b = append(b, ',')
		}
		b = appendText(append(b, `"url":`...), c.URL)
	}
	return append(b, '}')
}

func appendName(b []byte, name string) []byte {
	b = append(b, `,"`...)
	b = append(b, name...)
	return append(b, `":`...)
}

func appendMember(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(appendName(b, name), text)
}

func appendNumber(b []byte, name string, n int) []byte {
	if n == 0 {
		return b
	}
	return appendInt(appendName(b, name), n)
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }

// quotedLen bounds the length of text between the quotes of a JSON string.
func quotedLen(text []byte) int {
	n := len(text)
	for _, c := range text {
		switch {
		case c < ' ':
			n += len(`\u0000`) - 1
		case c == '"' || c == '\\':
			n++
		}
	}
	return n
}

func appendLabels(b []byte, labels map[string]string) []byte {
	if len(labels) == 0 {
		return b
	}
	b = append(appendName(b, nameLabels), '{')
	for i, k := range slices.Sorted(maps.Keys(labels)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, k)
		b = appendText(append(b, ':'), labels[k])
	}
	return append(b, '}')
}
