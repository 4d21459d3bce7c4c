package wire

import (
	"reflect"
	"time"

	"github.com/jobhost/jobhost"
)

// workflowBody is the body that starts a workflow.
type workflowBody struct {
	Workflow    str        `json:"workflow" type:"string" doc:"The name of a definition of the host. Either it or definition is required."`
	Definition  rawObject  `json:"definition" type:"object" doc:"A definition that comes along, up to 8 MiB."`
	ID          str        `json:"id" type:"string" doc:"Names the workflow: wf- and 1 to 77 more characters; default: a new one. The same id with the same content is the same workflow."`
	Input       anyJSON    `json:"input" type:"" doc:"What it is started with: any JSON value."`
	InputText   plainText  `json:"input_text" type:"string" doc:"That as text; not together with input."`
	InputBase64 base64Text `json:"input_base64" type:"string" doc:"That as base64, for bytes that are no text; not together with input."`
	Labels      labels     `json:"labels" type:"object" doc:"Texts by name, added to those of the definition."`
	Retention   duration   `json:"retention" type:"string" doc:"How long it is kept after its end, such as \"7d\"; default: as the host says."`
}

// signalBody is the body of a signal.
type signalBody struct {
	ID            str        `json:"id" type:"string" doc:"Makes the signal count once, however often it is sent; default: each counts."`
	Payload       anyJSON    `json:"payload" type:"" doc:"What the step returns that waits for it: any JSON value, up to 64 KiB."`
	PayloadText   plainText  `json:"payload_text" type:"string" doc:"That as text; not together with payload."`
	PayloadBase64 base64Text `json:"payload_base64" type:"string" doc:"That as base64, for bytes that are no text; not together with payload."`
}

// cancelBody is the body that cancels a workflow.
type cancelBody struct {
	Reason str `json:"reason" type:"string" doc:"Why, for people."`
}

// retryBody is the body that retries a step.
type retryBody struct {
	Step str `json:"step" type:"string" doc:"The step to run again; default: the one that made the workflow fail."`
}

// WorkflowMembers lists the members of the body that starts a workflow; see [Members].
func WorkflowMembers() []Member { return members(reflect.TypeFor[workflowBody]()) }

// SignalMembers lists the members of the body of a signal; see [Members].
func SignalMembers() []Member { return members(reflect.TypeFor[signalBody]()) }

// CancelMembers lists those of the body that cancels a workflow.
func CancelMembers() []Member { return members(reflect.TypeFor[cancelBody]()) }

// RetryMembers lists those of the body that retries a step.
func RetryMembers() []Member { return members(reflect.TypeFor[retryBody]()) }

// DecodeWorkflow reads the body that starts a workflow, as [Decoder.Decode] reads
// that of a submit. The definition, if one comes along, is returned as it stands in
// the body. What the start says is not checked, see [jobhost.WorkflowStart.Check].
func (d *Decoder) DecodeWorkflow(body []byte) (start jobhost.WorkflowStart, definition []byte, err error) {
	var b workflowBody
	if err := d.read(body, oneObject, &b); err != nil {
		return start, nil, err
	}
	input, err := oneOf(form{"input", &b.Input.content}, form{"input_text", &b.InputText.content}, form{"input_base64", &b.InputBase64.content})
	if err != nil {
		return start, nil, err
	}
	if size := len(input.data); size > d.maxPayload {
		return start, nil, tooLarge(input.name, "input", size, d.maxPayload, "send where it is instead, or raise max_payload in the manifest")
	}
	return jobhost.WorkflowStart{
		Workflow: string(b.Workflow), ID: string(b.ID), Input: input.data, Labels: b.Labels, Retention: time.Duration(b.Retention),
	}, b.Definition, nil
}

// DecodeSignal reads the body of a signal, all but its name.
func (d *Decoder) DecodeSignal(body []byte) (jobhost.WorkflowSignal, error) {
	var b signalBody
	if err := d.read(body, oneObject, &b); err != nil {
		return jobhost.WorkflowSignal{}, err
	}
	payload, err := oneOf(form{"payload", &b.Payload.content}, form{"payload_text", &b.PayloadText.content}, form{"payload_base64", &b.PayloadBase64.content})
	return jobhost.WorkflowSignal{ID: string(b.ID), Payload: payload.data}, err
}

// DecodeCancel reads the body that cancels a workflow and returns the reason.
func (d *Decoder) DecodeCancel(body []byte) (reason string, err error) {
	var b cancelBody
	err = d.read(body, oneObject, &b)
	return string(b.Reason), err
}

// DecodeRetry reads the body that retries a step and returns its name.
func (d *Decoder) DecodeRetry(body []byte) (step string, err error) {
	var b retryBody
	err = d.read(body, oneObject, &b)
	return string(b.Step), err
}

// AppendWorkflow appends the body that starts a workflow, with the definition as JSON
// if one comes along. Decoding it gives an equal start, unless texts of it are not valid UTF-8.
func AppendWorkflow(b []byte, start *jobhost.WorkflowStart, definition []byte) []byte {
	b = appendText(append(b, `{"id":`...), start.ID)
	b = appendMember(b, "workflow", start.Workflow)
	if definition != nil {
		b = append(appendName(b, "definition"), definition...)
	}
	b = appendContent(b, "input_text", "input_base64", start.Input)
	if start.Retention != 0 {
		b = appendMember(b, "retention", start.Retention.String())
	}
	return append(appendLabels(b, start.Labels), '}')
}

// AppendSignal appends the body of a signal, all but its name.
func AppendSignal(b []byte, signal *jobhost.WorkflowSignal) []byte {
	b = appendText(append(b, `{"id":`...), signal.ID)
	return append(appendContent(b, "payload_text", "payload_base64", signal.Payload), '}')
}

// AppendCancel and AppendRetry append the bodies of the calls that have one text each.
func AppendCancel(b []byte, reason string) []byte { return appendOnly(b, "reason", reason) }

// AppendRetry is described with [AppendCancel].
func AppendRetry(b []byte, step string) []byte { return appendOnly(b, "step", step) }

func appendOnly(b []byte, name, text string) []byte {
	return append(appendText(append(append(append(b, `{"`...), name...), `":`...), text), '}')
}

// WorkflowStarted is the answer to a start that waits: the workflow as it is then.
type WorkflowStarted struct {
	jobhost.WorkflowRun
	Deduplicated bool `json:"deduplicated"`
}

// WorkflowCheck is the answer about a definition without faults.
type WorkflowCheck struct {
	OK bool `json:"ok"`
	// Hash is the SHA-256 of the definition as canonical JSON, in hex.
	Hash string `json:"hash"`
}
