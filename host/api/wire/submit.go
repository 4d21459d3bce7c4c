package wire

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
)

// submitBody is the body of a submit.
type submitBody struct {
	Worker         str                  `json:"worker" type:"string" doc:"The worker of the manifest that is to do it. Required."`
	ID             str                  `json:"id" type:"string" doc:"Names the job; default: a new UUID of version 7. The same id with the same content is the same job."`
	Payload        textOrJSON           `json:"payload" type:"" doc:"What the worker gets: the text of a string, or the JSON text of any other value."`
	PayloadBase64  base64Text           `json:"payload_base64" type:"string" doc:"The payload as base64, for bytes that are no text; not together with payload."`
	PayloadRef     str                  `json:"payload_ref" type:"string" doc:"A payload that was uploaded: what POST /v1/payloads answered; not together with payload. It is for one job."`
	ContentType    str                  `json:"content_type" type:"string" doc:"Describes the payload; application/json if payload is not a string and nothing else is given."`
	Entry          str                  `json:"entry" type:"string" doc:"The export to call; default: the worker's."`
	Priority       priority             `json:"priority" type:"string" doc:"critical, high, normal (the default), low or background."`
	Delay          duration             `json:"delay" type:"string" doc:"When the job may start, counted from now, such as \"5s\"; not together with run_at."`
	RunAt          instant              `json:"run_at" type:"string" doc:"When the job may start, as RFC 3339."`
	Tasks          whole                `json:"tasks" type:"integer" doc:"The number of partitions; default: 1."`
	MaxAttempts    whole                `json:"max_attempts" type:"integer" doc:"How often it is tried, the first time included; default: the worker's."`
	Timeout        duration             `json:"timeout" type:"string" doc:"Bounds one attempt, such as \"30s\"; default: the worker's."`
	ConcurrencyKey str                  `json:"concurrency_key" type:"string" doc:"Jobs with the same key take turns with others, and count together for the worker's concurrency_per_key."`
	Deadline       duration             `json:"deadline" type:"string" doc:"How long after the submit the job is given up if it waits, such as \"1h\"."`
	UniqueKey      str                  `json:"unique_key" type:"string" doc:"The worker has one job with this key at a time: another submit returns that one."`
	UniqueFor      duration             `json:"unique_for" type:"string" doc:"How long after its submit a job keeps others with its unique_key out, such as \"1h\"; default: as long as it is kept."`
	Callback       object[callbackBody] `json:"callback" type:"object" doc:"What to notify when this job has ended: worker gets a job, or url a POST. The notification is submitted together with the end."`
	Retention      duration             `json:"retention" type:"string" doc:"How long the job is kept after its end, such as \"7d\"; default: as the worker says."`
	Labels         labels               `json:"labels" type:"object" doc:"Texts by name, for people and filters."`
}

// callbackBody is the member callback of a submit.
type callbackBody struct {
	Worker str `json:"worker"`
	URL    str `json:"url"`
}

// Members lists the members of a submit's body. Type is that of JSON Schema;
// "" = any.
func Members() []Member { return members(reflect.TypeFor[submitBody]()) }

// Decode reads one body. The spec keeps nothing of it. What the spec says is
// not checked, see [jobhost.Spec.Check]. Errors: invalid with the offset or
// the field, too_large for the payload.
func (d *Decoder) Decode(body []byte) (jobhost.Spec, error) {
	b := &d.submit
	defer func() { *b = submitBody{} }()
	if err := d.read(body, "send one JSON object; many jobs go to /v1/jobs:batch, one per line", b); err != nil {
		return jobhost.Spec{}, err
	}
	payload, err := oneOf(form{"payload", &b.Payload.content}, form{"payload_base64", &b.PayloadBase64.content})
	if err != nil {
		return jobhost.Spec{}, err
	}
	if size := len(payload.data); size > d.maxPayload {
		return jobhost.Spec{}, tooLarge(payload.name, "payload", size, d.maxPayload,
			"upload it first: POST /v1/payloads, jobhost submit --file; or raise max_payload in the manifest")
	}
	if b.ContentType == "" && payload.isJSON {
		b.ContentType = JSON
	}
	callback := jobhost.Callback{Worker: string(b.Callback.value.Worker), URL: string(b.Callback.value.URL)}
	if b.Callback.given && callback == (jobhost.Callback{}) {
		return jobhost.Spec{}, jobhost.Invalid("callback", `write {"worker":"notify"} or {"url":"https://example.com/hook"}`, "callback names neither a worker nor a URL")
	}
	return jobhost.Spec{
		Worker: string(b.Worker), ID: string(b.ID), Payload: payload.data, PayloadRef: string(b.PayloadRef),
		ContentType: string(b.ContentType), Entry: string(b.Entry), Priority: jobhost.Priority(b.Priority),
		Delay: time.Duration(b.Delay), RunAt: b.RunAt.Time, Tasks: int(b.Tasks), MaxAttempts: int(b.MaxAttempts),
		Timeout: time.Duration(b.Timeout), ConcurrencyKey: string(b.ConcurrencyKey), Deadline: time.Duration(b.Deadline),
		UniqueKey: string(b.UniqueKey), UniqueFor: time.Duration(b.UniqueFor), Callback: callback,
		Retention: time.Duration(b.Retention), Labels: b.Labels,
	}, nil
}

// AppendSubmit appends the body that asks for spec. Decoding it gives an equal
// spec, unless texts of the spec are not valid UTF-8 (which no host accepts).
func AppendSubmit(b []byte, spec *jobhost.Spec) []byte {
	b = appendText(append(b, `{"worker":`...), spec.Worker)
	b = appendMember(b, "id", spec.ID)
	b = appendContent(b, "payload", "payload_base64", spec.Payload)
	b = appendMember(b, "payload_ref", spec.PayloadRef)
	b = appendMember(b, "content_type", spec.ContentType)
	b = appendMember(b, "entry", spec.Entry)
	if spec.Priority != 0 {
		b = appendMember(b, "priority", spec.Priority.String())
	}
	if spec.Delay != 0 {
		b = appendMember(b, "delay", spec.Delay.String())
	}
	if !spec.RunAt.IsZero() {
		b = appendMember(b, "run_at", spec.RunAt.Format(time.RFC3339Nano))
	}
	b = appendNumber(b, "tasks", spec.Tasks)
	b = appendNumber(b, "max_attempts", spec.MaxAttempts)
	if spec.Timeout != 0 {
		b = appendMember(b, "timeout", spec.Timeout.String())
	}
	b = appendMember(b, "concurrency_key", spec.ConcurrencyKey)
	b = appendMember(b, "unique_key", spec.UniqueKey)
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"deadline", spec.Deadline}, {"unique_for", spec.UniqueFor}} {
		if d.value != 0 {
			b = appendMember(b, d.name, d.value.String())
		}
	}
	b = appendCallback(b, spec.Callback)
	if spec.Retention != 0 {
		b = appendMember(b, "retention", spec.Retention.String())
	}
	return append(appendLabels(b, spec.Labels), '}')
}

func appendCallback(b []byte, c jobhost.Callback) []byte {
	if c == (jobhost.Callback{}) {
		return b
	}
	b = append(appendName(b, "callback"), '{')
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
	b = append(appendName(b, "labels"), '{')
	for i, k := range slices.Sorted(maps.Keys(labels)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, k)
		b = appendText(append(b, ':'), labels[k])
	}
	return append(b, '}')
}
